// A dataset within reach of a device, as bytes: steps gather their mini-batches there by index, so that the host only
// sends indices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataflow/input/dataset.h"
#include "engine/buffer.h"
#include "engine/device.h"
#include "engine/ops/gather_examples.h"

namespace arbalest::dataflow {

// Where the mini-batch of a gathering comes from and goes to.
struct GatherBuffers {
  const std::int64_t* indices = nullptr;  // [batch]
  float* images = nullptr;                // [batch, c, h, w]
  std::int32_t* labels = nullptr;         // [batch]
  std::int64_t batch = 0;
  const engine::StepParameters* step = nullptr;  // of the mini-batch, read at run time; of augmented datasets only
};

class ResidentData {
 public:
  // A CPU device reads the dataset's own memory; a GPU gets a copy, for which the host blocks. `dataset` must have
  // stored_bytes() and outlive this. Throws kOutOfMemory, after which the device is as before.
  ResidentData(const Dataset& dataset, engine::Device& device);

  // What so many examples take of the device's memory, besides the dataset's own.
  static std::size_t device_bytes(const InputDescription& description, std::int64_t examples,
                                  const engine::Device& device);

  // The task that gathers; both this and the buffers must outlive it.
  engine::GatherExamples gather(const GatherBuffers& buffers) const;

 private:
  engine::GatherExamples examples_;  // without buffers
  engine::Buffer pixels_;            // GPU
  engine::Buffer classes_;
  engine::Buffer normalized_;
};

}  // namespace arbalest::dataflow
