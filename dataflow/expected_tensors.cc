#include "dataflow/expected_tensors.h"

#include <algorithm>

#include "engine/base/error.h"

namespace arbalest::dataflow {

void check_tensors(std::span<const NamedTensor> tensors, std::span<const ExpectedTensor> expected) {
  using engine::ErrorKind;
  for (const NamedTensor& tensor : tensors) {
    if (std::ranges::find(expected, tensor.name, &ExpectedTensor::name) == expected.end()) {
      engine::fail(ErrorKind::kCheckpoint, "tensor '{}' is no parameter of the model", tensor.name);
    }
  }
  for (const ExpectedTensor& parameter : expected) {
    const auto found = std::ranges::find(tensors, parameter.name, &NamedTensor::name);
    if (found == tensors.end()) engine::fail(ErrorKind::kCheckpoint, "parameter '{}' is missing", parameter.name);
    if (found->shape != parameter.shape) {
      engine::fail(ErrorKind::kCheckpoint, "parameter '{}' is {} in the file and {} in the model", parameter.name,
                   to_string(found->shape), to_string(parameter.shape));
    }
  }
}

}  // namespace arbalest::dataflow
