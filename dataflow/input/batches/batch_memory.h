// Host memory for mini-batches of labeled examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataflow/input/input_description.h"
#include "dataflow/input/input_tensor.h"
#include "engine/buffer.h"
#include "engine/device.h"

namespace arbalest::dataflow {

class BatchMemory {
 public:
  // Returns the host memory that `batches` mini-batches take.
  static std::size_t bytes(const InputDescription& description, std::int64_t batch_size, int batches);

  // Allocates `batches` mini-batches in the device's host memory.
  BatchMemory(InputDescription description, std::int64_t batch_size, engine::Device& device, int batches = 1);
  BatchMemory(BatchMemory&&) = default;

  // The tensors of one mini-batch, [batch_size, ...] each, in the order of the description. They are aligned to 64
  // bytes.
  std::span<const InputTensor> batch(int number = 0) const;

 private:
  InputDescription description_;
  std::vector<engine::Buffer> buffers_;  // by tensor: [batches]
  std::vector<InputTensor> tensors_;     // [batches, tensors]
};

}  // namespace arbalest::dataflow
