// Gathers a mini-batch by indices from a dataset that is stored as bytes in the device's memory:
//   images[i, c, y, x] = normalized[c, pixels[indices[i], c, y, x]]     labels[i] = classes[indices[i]]
// An index kNoExample (in a padded batch) gives zeros and kNoLabel. If images are augmented, (y, x) is another pixel or
// a point between pixels (elementwise/augmentation.h).
#pragma once

#include <cstdint>

#include "engine/ops/augmentation.h"
#include "engine/ops/softmax_cross_entropy.h"
#include "engine/passes/step_parameters.h"

namespace arbalest::engine {

inline constexpr std::int64_t kNoExample = -1;

struct GatherExamples {
  const std::uint8_t* pixels = nullptr;   // [examples, channels, height, width]; aligned to 4 bytes on a GPU
  const std::int32_t* classes = nullptr;  // [examples]
  const float* normalized = nullptr;      // [channels, 256]: normalized value of each byte
  // [batch] in [0, examples), or kNoExample. Read at run time, so a recorded task gathers the current indices. 64 bits
  // each, as on the host: a mini-batch's indices take a few hundred bytes, and copying half of that takes as long.
  const std::int64_t* indices = nullptr;
  float* images = nullptr;         // [batch, channels, height, width]; aligned to 16 bytes on a GPU
  std::int32_t* labels = nullptr;  // [batch]
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t examples = 0;
  Augmentation augmentation;
  const StepParameters* step = nullptr;  // for augmentation: its task number is read at run time
};

// Pixels of one channel, and of all channels.
constexpr std::int64_t area_of(const GatherExamples& task) { return task.height * task.width; }
constexpr std::int64_t elements_of(const GatherExamples& task) { return task.channels * area_of(task); }

}  // namespace arbalest::engine
