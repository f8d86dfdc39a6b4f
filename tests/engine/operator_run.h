// Runs one operator on a real device stream, as a plan does: garbage in every buffer that the operator must fill,
// tensors converted from canonical order to the device's layouts and back, padding checked on the way. The host touches
// no memory of the device.
#pragma once

#include <memory>
#include <vector>

#include "engine/device.h"
#include "engine/operator.h"
#include "tests/support/numbers.h"
#include "tests/support/reference_ops.h"

namespace arbalest::tests {

using Floats = std::vector<float>;

// The device that the program is built for.
std::unique_ptr<engine::Device> open_test_device();

// What operators compute in, and how far from the reference of the same inputs they may be then: |difference| /
// |reference| in the Euclidean norm.
struct Arithmetic {
  const char* name;
  engine::Precision precision;
  engine::DType dtype;  // of tensors between layers
  double tolerance;
};

// All that the device knows.
std::vector<Arithmetic> arithmetics(const engine::Device& device);
// One for each type of tensors: for operators that compute in the type of their input.
std::vector<Arithmetic> tensor_types(const engine::Device& device);

// The nearest numbers that a tensor can hold, so that reference and operator read the same.
Values representable(Values values, engine::DType dtype);
inline Values random_values(std::int64_t count, unsigned seed, engine::DType dtype) {
  return representable(random_values(count, seed), dtype);
}

// A layout that convolutions of this device produce: blocked, with padded channels, where the device likes that, or
// with examples side by side.
engine::Layout native_image_layout(engine::Device& device, const engine::Shape& shape,
                                   engine::DType dtype = engine::DType::kFloat32);

struct OperatorRun {
  Floats output;
  Floats input_gradient;
  std::vector<Floats> other_gradients;  // of the other inputs, empty where not wanted
  std::vector<Floats> parameter_gradients;
  bool padding_is_zero = true;  // of the output and all gradients
};

struct OtherInput {
  engine::Layout layout;
  Values values;
};

struct OperatorCase {
  engine::OperatorSpec spec;
  engine::Layout input;
  Values input_values;
  std::vector<OtherInput> others = {};  // inputs behind the first, with gradients
  std::vector<Values> parameters = {};
  Values output_gradient = {};  // empty: forward only, or a loss
  Labels labels = {};           // of a loss of numbers: their bits
  engine::StepParameters step = {};
  bool in_place = false;  // where the traits allow it; of symmetric inputs the last that may
  bool replayed = false;  // record forward and backward, run them twice, look at the second run
};

// Prepares the operator for `options` and runs forward and, in training, backward. Checks that it writes nothing behind
// the buffers that it is to fill.
OperatorRun run_operator(engine::Device& device, const OperatorCase& of, const engine::PrepareOptions& options);

}  // namespace arbalest::tests
