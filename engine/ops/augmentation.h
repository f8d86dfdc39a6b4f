// Random changes of an image each time it is trained on. They depend on (seed, number of the mini-batch, row) only, not
// on the thread or learner that gets the example.
#pragma once

#include <cstdint>

namespace arbalest::engine {

// Takes a rectangle of random area, aspect ratio and place, and scales it to the model's size.
struct RandomResizedCrop {
  float min_area = 1.0F;        // smallest area relative to the image's, the largest is all of it; in (0, 1]
  float log_max_aspect = 0.0F;  // natural logarithm of the largest ratio of longer to shorter side; at least 0

  constexpr bool changes_images() const noexcept { return min_area < 1.0F || log_max_aspect > 0.0F; }
  bool operator==(const RandomResizedCrop&) const = default;
};

struct Augmentation {
  RandomResizedCrop random_crop{};  // applied to the stored image, before all other changes
  // Black pixels added around the image; a window of the image's size is then cut out at random.
  std::int32_t padding = 0;
  std::int32_t cutout = 0;        // side of a square around a random pixel that is set to zero after normalization
  bool horizontal_flip = false;   // flips half of the images
  std::uint8_t reserved[7] = {};  // so that all bytes passed to a kernel are initialized
  std::uint64_t seed = 0;         // the job's

  bool changes_images() const noexcept {
    return padding > 0 || cutout > 0 || horizontal_flip || random_crop.changes_images();
  }
  bool operator==(const Augmentation&) const = default;
};

}  // namespace arbalest::engine
