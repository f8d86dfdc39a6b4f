// Reads labeled sparse rows in the text format of LIBSVM and SVMlight, one row a line: "+1 3:0.5 17:2".
#pragma once

#include <cstdint>
#include <filesystem>

#include "dataflow/input/sparse/sparse_rows.h"
#include "engine/host/memory_budget.h"

namespace arbalest::dataflow {

// Streams the file, raw or compressed by gzip; its text is never held as a whole. Labels are -1 and 1, or 0 and 1;
// feature numbers ascend from 1 to `features`; a comment begins with #; every line ends with a line break. A value of 0
// is left out. Throws ErrorKind::kData with the file's line for everything else, and for a file without a row. Throws
// kOutOfMemory, before it allocates, for rows beyond `budget`.
SparseRows load_libsvm(const std::filesystem::path& path, std::int64_t features,
                       const engine::host::MemoryBudget& budget = engine::host::MemoryBudget());

}  // namespace arbalest::dataflow
