// A mini-batch by its indices, from a dataset that lies in memory of the device as bytes:
//   images[i, p] = normalized[pixels[indices[i], p]]     labels[i] = classes[indices[i]]
// and zeros with kNoLabel where the index is kNoExample (a padded batch).
#pragma once

#include <cstdint>

#include "engine/ops/softmax_cross_entropy.h"

namespace arbalest::engine {

inline constexpr std::int64_t kNoExample = -1;

struct GatherExamples {
  const std::uint8_t* pixels = nullptr;   // [examples, elements]; aligned to 4 bytes on a GPU
  const std::uint8_t* classes = nullptr;  // [examples]
  const float* normalized = nullptr;      // [256]: what each byte stands for
  // [batch] in [0, examples), or kNoExample; read at run time, so a recorded task gathers what was copied there. Of 64
  // bits, as the host has them: a mini-batch's are a few hundred bytes, and the copy takes the same time for half.
  const std::int64_t* indices = nullptr;
  float* images = nullptr;         // [batch, elements]; aligned to 16 bytes on a GPU
  std::int32_t* labels = nullptr;  // [batch]
  std::int64_t batch = 0;
  std::int64_t elements = 0;  // of an image
  std::int64_t examples = 0;
};

}  // namespace arbalest::engine
