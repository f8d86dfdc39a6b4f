// How images are varied each time that they are trained on. What becomes of an example is a function of (seed, number
// of the mini-batch, row), so neither the thread nor the learner that gets it matters.
#pragma once

#include <cstdint>

namespace arbalest::engine {

// A rectangle of random area, aspect and place, brought to the size that the model sees.
struct RandomResizedCrop {
  float min_area = 1.0F;        // of the image's area, the most is all of it; in (0, 1]
  float log_max_aspect = 0.0F;  // the natural logarithm of the longer to the shorter side; at least 0

  constexpr bool changes_images() const noexcept { return min_area < 1.0F || log_max_aspect > 0.0F; }
  bool operator==(const RandomResizedCrop&) const = default;
};

struct Augmentation {
  RandomResizedCrop random_crop{};  // of the image as it is stored, before all others
  std::int32_t padding = 0;         // black pixels put around the image, out of which one of its size is cut at random
  std::int32_t cutout = 0;          // side of a square around a random pixel that becomes zero after normalization
  bool horizontal_flip = false;     // of half of the images
  std::uint8_t reserved[7] = {};    // so that all bytes that a kernel gets have a value
  std::uint64_t seed = 0;           // the job's

  bool changes_images() const noexcept {
    return padding > 0 || cutout > 0 || horizontal_flip || random_crop.changes_images();
  }
  bool operator==(const Augmentation&) const = default;
};

}  // namespace arbalest::engine
