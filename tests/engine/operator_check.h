// Checks an operator against its definition in double precision. A test gives one struct for each case; it needs no
// gradients, because those of the definition follow from central differences.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/operator.h"
#include "tests/support/reference_ops.h"

namespace arbalest::tests {

struct OperatorCheck {
  std::string name;
  std::vector<engine::Shape> inputs;
  std::vector<engine::Shape> parameters = {};
  // The operator's options for inputs of these layouts.
  std::function<engine::OperatorSpec(std::span<const engine::Layout> inputs)> spec = {};
  // The output, in canonical order. It must not depend on anything else.
  std::function<Values(const std::vector<Values>& inputs, const std::vector<Values>& parameters)> reference = {};
  // Inputs are random in [middle - spread, middle + spread).
  double middle = 0.0;
  double spread = 1.0;
  std::size_t most_saved_bytes = 0;  // that forward may save for backward
};

// Prepares and runs the operator with every tensor type of the device, in canonical order and in the layout of its
// convolutions (for images), with every number of threads, in place, recorded and neither, in training and at
// inference. Checks that
// - output and gradients agree with the reference;
// - padding is zero, nothing is written past a buffer, and the output's gradient stays as it is unless it is in place;
// - inference gives the bits of training;
// - the bits depend on none of: number of threads, in place, recorded, whether the input's gradient is wanted.
// Gradients of large tensors are compared at evenly spread elements, and as a whole along one random direction.
void check_operator(const OperatorCheck& check);
inline void check_operators(const std::vector<OperatorCheck>& checks) {
  for (const OperatorCheck& check : checks) check_operator(check);
}

}  // namespace arbalest::tests
