// Two datasets as one: what a model is evaluated on, the test set and behind it the validation set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "dataflow/input/dataset.h"

namespace arbalest::dataflow {

// The examples of `first`, then those of `second`, which has the same description. Two datasets of bytes become one
// dataset of bytes, so that steps can gather from both; others are read each by its own.
std::unique_ptr<Dataset> join(std::unique_ptr<Dataset> first, std::unique_ptr<Dataset> second);

}  // namespace arbalest::dataflow
