// The files of one split of a dataset, for the readers of formats.
#pragma once

#include <filesystem>
#include <string>

#include "dataflow/input/dataset.h"
#include "engine/host/memory_budget.h"

namespace arbalest::dataflow {

struct SplitFiles {
  std::string name;                // of the dataset
  std::filesystem::path examples;  // or the file of both
  std::filesystem::path labels;
  InputDescription expected;
  Normalization normalization;
  engine::host::MemoryBudget budget{};
  std::filesystem::path training = {};  // the training set's examples
};

}  // namespace arbalest::dataflow
