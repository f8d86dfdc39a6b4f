// Whether a run's model will find room on the disk, known before it is trained.
#pragma once

#include <cstdint>
#include <filesystem>

#include "dataflow/graph.h"

namespace arbalest::jobs {

// Bytes of a file with the graph's parameters, but for its header.
std::int64_t model_bytes(const dataflow::Graph& graph);

// Throws kOutOfMemory if the file system of `directory` has less room than the model and a reserve for everything else
// that a run writes. One that does not tell how much it has passes: writing will show.
void check_output_space(const std::filesystem::path& directory, const dataflow::Graph& graph);

}  // namespace arbalest::jobs
