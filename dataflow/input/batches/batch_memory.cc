#include "dataflow/input/batches/batch_memory.h"

#include <utility>

#include "engine/base/alignment.h"

namespace arbalest::dataflow {

namespace {

std::size_t tensor_bytes(const TensorDescription& tensor, std::int64_t batch_size) {
  return engine::aligned(static_cast<std::size_t>(batch_size) * tensor.bytes());
}

}  // namespace

std::size_t BatchMemory::bytes(const InputDescription& description, std::int64_t batch_size, int batches) {
  std::size_t each = 0;
  for (const TensorDescription& tensor : description.tensors) each += tensor_bytes(tensor, batch_size);
  return static_cast<std::size_t>(batches) * each;
}

BatchMemory::BatchMemory(InputDescription description, std::int64_t batch_size, engine::Device& device, int batches)
    : description_(std::move(description)) {
  for (const TensorDescription& tensor : description_.tensors) {
    buffers_.push_back(device.allocate_host(static_cast<std::size_t>(batches) * tensor_bytes(tensor, batch_size)));
  }
  for (std::size_t batch = 0; batch < static_cast<std::size_t>(batches); ++batch) {
    for (std::size_t t = 0; t < buffers_.size(); ++t) {
      const TensorDescription& tensor = description_.tensors[t];
      tensors_.emplace_back(tensor, buffers_[t].as<std::byte>() + batch * tensor_bytes(tensor, batch_size),
                            static_cast<std::size_t>(batch_size));
    }
  }
}

std::span<const InputTensor> BatchMemory::batch(int number) const {
  return std::span(tensors_).subspan(static_cast<std::size_t>(number) * buffers_.size(), buffers_.size());
}

}  // namespace arbalest::dataflow
