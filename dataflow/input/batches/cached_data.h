// A dataset in a device's memory, as bytes. Steps gather their mini-batches there by index, so that the host sends only
// indices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataflow/input/dataset.h"
#include "engine/buffer.h"
#include "engine/device.h"
#include "engine/ops/gather_examples.h"

namespace arbalest::dataflow {

// Source and destination of one gathered mini-batch.
struct GatherBuffers {
  const std::int64_t* indices = nullptr;  // [batch]
  float* images = nullptr;                // [batch, c, h, w]
  std::int32_t* labels = nullptr;         // [batch]
  std::int64_t batch = 0;
  // Parameters of the mini-batch's step, read at run time; for augmented datasets only.
  const engine::StepParameters* step = nullptr;
};

class CachedData {
 public:
  // A CPU device reads the dataset's own memory; a GPU gets a copy, for which the host blocks. `dataset` must have
  // stored_bytes() and outlive this object. Throws kOutOfMemory and leaves the device unchanged.
  CachedData(const Dataset& dataset, engine::Device& device);

  // Device memory for this many examples, besides the dataset's own memory.
  static std::size_t device_bytes(const InputDescription& description, std::int64_t examples,
                                  const engine::Device& device);

  // The gathering as a task for a stream; this object and the buffers must outlive it.
  engine::GatherExamples gather(const GatherBuffers& buffers) const;

 private:
  engine::GatherExamples examples_;  // without buffers
  engine::Buffer pixels_;            // GPU
  engine::Buffer classes_;
  engine::Buffer normalized_;
};

}  // namespace arbalest::dataflow
