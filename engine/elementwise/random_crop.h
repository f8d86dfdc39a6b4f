// Chooses the rectangle of a random resized crop (Szegedy et al., "Going deeper with convolutions", 2015, section 6).
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/elementwise/exponential.h"
#include "engine/elementwise/philox.h"
#include "engine/elementwise/portable.h"
#include "engine/ops/augmentation.h"

namespace arbalest::engine::elementwise {

struct ImageSize {
  std::int32_t height;
  std::int32_t width;
};

// A rectangle of whole pixels within the image; a height of 0 means none.
struct Rectangle {
  std::int32_t top;
  std::int32_t left;
  std::int32_t height;
  std::int32_t width;
};

// The rectangle for example `row` of mini-batch `task`: its area is uniform, and so is the logarithm of its aspect
// ratio. Returns none if no attempt fits into the image, which may have at most 2^31 pixels.
ARBALEST_HOST_DEVICE Rectangle random_crop(const RandomResizedCrop& crop, std::uint64_t seed, std::uint64_t task,
                                           std::uint32_t row, ImageSize size) {
  for (std::uint32_t attempt = 0; attempt < kCropAttempts; ++attempt) {
    const PhiloxCounter random = random_of_row(seed, task, row, kCropLayer - attempt);
    const float area = (crop.min_area + (1.0F - crop.min_area) * unit(random.words[0])) *
                       static_cast<float>(size.height) * static_cast<float>(size.width);
    const float aspect = exponential((2.0F * unit(random.words[1]) - 1.0F) * crop.log_max_aspect);
    const auto height = static_cast<std::int32_t>(std::sqrt(area / aspect) + 0.5F);
    const auto width = static_cast<std::int32_t>(std::sqrt(area * aspect) + 0.5F);
    if (height < 1 || width < 1 || height > size.height || width > size.width) continue;
    return {.top = uniform(random.words[2], size.height - height + 1),
            .left = uniform(random.words[3], size.width - width + 1),
            .height = height,
            .width = width};
  }
  return {};
}

}  // namespace arbalest::engine::elementwise
