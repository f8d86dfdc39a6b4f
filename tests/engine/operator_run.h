// Runs one operator on a real device stream, as a plan does. Every buffer that the operator must fill holds garbage
// first. Tensors are converted from canonical order to the device's layouts and back, and padding is checked. The host
// touches no memory of the device.
#pragma once

#include <memory>
#include <vector>

#include "engine/device.h"
#include "engine/operator.h"
#include "tests/support/numbers.h"
#include "tests/support/reference_ops.h"

namespace arbalest::tests {

using Floats = std::vector<float>;

// Opens the device that the program is built for.
std::unique_ptr<engine::Device> open_test_device();

// An arithmetic of operators, and the allowed distance from a reference with the same inputs: |difference| /
// |reference| in the Euclidean norm.
struct Arithmetic {
  const char* name;
  engine::Precision precision;
  engine::DType dtype;  // type of tensors between layers
  double tolerance;
};

// All arithmetics that the device supports.
std::vector<Arithmetic> arithmetics(const engine::Device& device);
// One arithmetic per tensor type, for operators that compute in the type of their input.
std::vector<Arithmetic> tensor_types(const engine::Device& device);

// Rounds to numbers that a tensor can hold, so that reference and operator read the same numbers.
Values representable(Values values, engine::DType dtype);
inline Values random_values(std::int64_t count, unsigned seed, engine::DType dtype) {
  return representable(random_values(count, seed), dtype);
}

// A layout that convolutions of this device produce: blocked with padded channels, if the device prefers that, or with
// examples side by side.
engine::Layout native_image_layout(engine::Device& device, const engine::Shape& shape,
                                   engine::DType dtype = engine::DType::kFloat32);

struct OperatorRun {
  Floats output;
  Floats input_gradient;
  std::vector<Floats> other_gradients;  // gradients of the other inputs, empty if not wanted
  std::vector<Floats> parameter_gradients;
  bool padding_is_zero = true;  // padding of the output and all gradients
};

struct OtherInput {
  engine::Layout layout;
  Values values;
};

struct OperatorCase {
  engine::OperatorSpec spec;
  engine::Layout input;
  Values input_values;
  std::vector<OtherInput> others = {};  // inputs after the first, with gradients
  std::vector<Values> parameters = {};
  Values output_gradient = {};  // empty: forward only, or a loss
  Labels labels = {};           // for a loss of numbers: their bits
  engine::StepParameters step = {};
  bool in_place = false;  // in place if the traits allow it; for symmetric inputs, with the last one that may
  bool replayed = false;  // record forward and backward, run them twice, check the second run
};

// Prepares the operator for `options` and runs forward and, in training, backward. Checks that nothing is written
// behind the buffers that the operator must fill.
OperatorRun run_operator(engine::Device& device, const OperatorCase& of, const engine::PrepareOptions& options);

}  // namespace arbalest::tests
