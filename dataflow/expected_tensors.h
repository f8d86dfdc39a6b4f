// Checks that named tensors are exactly those that a model needs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dataflow/parameter_layout.h"

namespace arbalest::dataflow {

struct ExpectedTensor {
  std::string name;
  engine::Shape shape;
};

// Throws engine::ErrorKind::kCheckpoint unless `tensors` are the expected ones, in any order.
void check_tensors(std::span<const NamedTensor> tensors, std::span<const ExpectedTensor> expected);

}  // namespace arbalest::dataflow
