// Host memory for one example.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dataflow/input/dataset.h"

namespace arbalest::dataflow {

class Example {
 public:
  explicit Example(InputDescription description);
  Example(Example&&) = default;

  // The tensors are in the order of the description.
  std::span<const InputTensor> tensors() const noexcept { return tensors_; }
  std::span<const InputTensor> features() const noexcept { return tensors().first(tensors_.size() - 1); }
  const InputTensor& label() const noexcept { return tensors_.back(); }

 private:
  InputDescription description_;
  std::vector<std::vector<std::byte>> values_;  // by tensor
  std::vector<InputTensor> tensors_;
};

}  // namespace arbalest::dataflow
