// The pixels of an augmented image. Padding, cropping and flipping as in He et al., "Deep residual learning for image
// recognition" (2016), section 4.2; cutout as in DeVries and Taylor (2017): the square may reach over the border.
#pragma once

#include <cstdint>

#include "engine/elementwise/philox.h"
#include "engine/elementwise/portable.h"
#include "engine/ops/augmentation.h"

namespace arbalest::engine::elementwise {

// What has been drawn for an image.
struct AugmentedView {
  std::int32_t top;  // of the crop, in the image without its padding: in [-padding, padding]
  std::int32_t left;
  bool is_mirrored;
  std::int32_t hole_top;  // the cut-out square, in the augmented image; its ends are exclusive
  std::int32_t hole_bottom;
  std::int32_t hole_left;
  std::int32_t hole_right;
};

struct ImageSize {
  std::int32_t height;
  std::int32_t width;
};

// Stands for a layer in the random generator's counter (compare dropout.h): no model has so many.
inline constexpr std::uint32_t kAugmentationLayer = 0xFFFFFFFFU;

// In [0, bound), of a random word.
ARBALEST_HOST_DEVICE std::int32_t uniform(std::uint32_t word, std::int32_t bound) {
  return static_cast<std::int32_t>(std::uint64_t{word} * static_cast<std::uint32_t>(bound) >> 32);
}

// `row`: of the example in its mini-batch `task`. Sides of an image are below 2^16.
ARBALEST_HOST_DEVICE AugmentedView augmented_view(const Augmentation& augmentation, std::uint64_t task,
                                                  std::uint32_t row, ImageSize size) {
  const PhiloxCounter random =
      philox({{row, kAugmentationLayer, static_cast<std::uint32_t>(task), static_cast<std::uint32_t>(task >> 32)}},
             {{static_cast<std::uint32_t>(augmentation.seed), static_cast<std::uint32_t>(augmentation.seed >> 32)}});
  const std::int32_t places = 2 * augmentation.padding + 1;
  // Two coordinates of 16 random bits each.
  const std::int32_t hole_top = uniform(random.words[3], size.height) - augmentation.cutout / 2;
  const std::int32_t hole_left = uniform(random.words[3] << 16, size.width) - augmentation.cutout / 2;
  return {.top = uniform(random.words[0], places) - augmentation.padding,
          .left = uniform(random.words[1], places) - augmentation.padding,
          .is_mirrored = augmentation.horizontal_flip && (random.words[2] & 1U) != 0,
          .hole_top = hole_top,
          .hole_bottom = hole_top + augmentation.cutout,
          .hole_left = hole_left,
          .hole_right = hole_left + augmentation.cutout};
}

// The value at (y, x) of the augmented image. `pixels` [height, width]: a channel of the image; `normalized` [256]:
// what its bytes stand for.
ARBALEST_HOST_DEVICE float augmented_value(const AugmentedView& view, const std::uint8_t* pixels,
                                           const float* normalized, ImageSize size, std::int32_t y, std::int32_t x) {
  if (y >= view.hole_top && y < view.hole_bottom && x >= view.hole_left && x < view.hole_right) return 0.0F;
  const std::int32_t row = y + view.top;
  const std::int32_t column = (view.is_mirrored ? size.width - 1 - x : x) + view.left;
  const bool is_inside = row >= 0 && row < size.height && column >= 0 && column < size.width;
  return normalized[is_inside ? pixels[static_cast<std::int64_t>(row) * size.width + column] : 0];
}

}  // namespace arbalest::engine::elementwise
