#include "dataflow/input/example.h"

#include <utility>

namespace arbalest::dataflow {

Example::Example(InputDescription description) : description_(std::move(description)) {
  for (const TensorDescription& tensor : description_.tensors) {
    values_.emplace_back(tensor.bytes());
    tensors_.emplace_back(tensor, values_.back().data());
  }
}

}  // namespace arbalest::dataflow
