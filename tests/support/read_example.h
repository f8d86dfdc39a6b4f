// Reads examples and mini-batches with one feature, an image.
#pragma once

#include <cstdint>
#include <span>

#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/input/dataset.h"

namespace arbalest::tests {

// Writes the image, float32 [c, h, w].
inline void read_image(const dataflow::Dataset& data, std::int64_t example, const dataflow::ExamplePosition& position,
                       float* image) {
  const dataflow::InputTensor tensor(data.description().only_feature(), image);
  data.read(example, position, std::span(&tensor, 1));
}

// The images of a mini-batch, [b, c, h, w], and its labels, [b].
inline const float* images_of(const dataflow::Batch& batch) { return batch.tensors.front().as<const float>().data(); }
inline const std::int32_t* labels_of(const dataflow::Batch& batch) {
  return batch.tensors.back().as<const std::int32_t>().data();
}

}  // namespace arbalest::tests
