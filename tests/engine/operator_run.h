// Runs one operator on a real device stream, as a plan does. Buffers that the operator must fill start with garbage.
// Tensors are converted from canonical order to the device's layouts and back, and their padding is checked. The host
// does not access device memory directly.
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

// A precision and tensor type of operators. `tolerance` is the allowed |difference| / |reference| in the Euclidean
// norm, from a reference with the same inputs.
struct Arithmetic {
  const char* name;
  engine::Precision precision;
  engine::DType dtype;  // type of tensors between layers
  double tolerance;
};

// Returns all arithmetics that the device supports.
std::vector<Arithmetic> arithmetics(const engine::Device& device);
// Returns one arithmetic per tensor type, for operators that compute in the type of their input.
std::vector<Arithmetic> tensor_types(const engine::Device& device);

// Rounds the values to `dtype`, so that reference and operator read the same numbers.
Values representable(Values values, engine::DType dtype);
inline Values random_values(std::int64_t count, unsigned seed, engine::DType dtype) {
  return representable(random_values(count, seed), dtype);
}

// Returns a layout that convolutions of this device produce. It may be blocked with padded channels, or have the
// examples in lanes.
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
  Values addend = {};           // of the first input's gradient, for an operator that adds_to_gradient; empty: none
  Labels labels = {};           // for a loss of numbers: their bits
  engine::StepParameters step = {};
  // In place if the traits allow it, for symmetric inputs in the last one that may be; the gradient in its addend's
  // place.
  bool in_place = false;
  bool replayed = false;  // record forward and backward, run them twice, check the second run
};

// Prepares the operator for `options`. Runs the forward pass and, in training, the backward pass. Checks that nothing
// is written past the end of the buffers that the operator must fill.
OperatorRun run_operator(engine::Device& device, const OperatorCase& of, const engine::PrepareOptions& options);

}  // namespace arbalest::tests
