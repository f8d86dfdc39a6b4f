// Joins two datasets: a model may be evaluated on the test set followed by the validation set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "dataflow/input/dataset.h"
#include "engine/host/memory_budget.h"

namespace arbalest::dataflow {

// Returns a dataset with the examples of `first`, then those of `second`, which must have the same description. Two
// datasets of bytes are copied into one, so that steps can gather from both. Other datasets stay separate, behind one
// interface. Throws ErrorKind::kOutOfMemory if the copy does not fit into `budget`.
std::unique_ptr<Dataset> join(std::unique_ptr<Dataset> first, std::unique_ptr<Dataset> second,
                              const engine::host::MemoryBudget& budget = engine::host::MemoryBudget());

}  // namespace arbalest::dataflow
