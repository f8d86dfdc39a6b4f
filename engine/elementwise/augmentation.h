// The pixels of an augmented image. Padding, cropping and flipping as in He et al., "Deep residual learning for image
// recognition" (2016), section 4.2; cutout as in DeVries and Taylor (2017): the square may reach over the border.
#pragma once

#include <cstdint>

#include "engine/elementwise/philox.h"
#include "engine/elementwise/portable.h"
#include "engine/elementwise/random_crop.h"
#include "engine/ops/augmentation.h"

namespace arbalest::engine::elementwise {

// What has been drawn for an image.
struct AugmentedView {
  std::int32_t top;  // of the window, in the image without its padding: in [-padding, padding]
  std::int32_t left;
  bool is_mirrored;
  std::int32_t hole_top;  // the cut-out square, in the augmented image; its ends are exclusive
  std::int32_t hole_bottom;
  std::int32_t hole_left;
  std::int32_t hole_right;
  bool is_resized;  // a rectangle has been brought to the image's size before all that:
  float from_top;   // its place in the image as it is stored,
  float from_left;
  float row_step;  // and how far apart the rows and columns lie there
  float column_step;
};

// `row`: of the example in its mini-batch `task`. Sides are below 2^16.
ARBALEST_HOST_DEVICE AugmentedView augmented_view(const Augmentation& augmentation, std::uint64_t task,
                                                  std::uint32_t row, ImageSize size) {
  const PhiloxCounter random = random_of_row(augmentation.seed, task, row, kAugmentationLayer);
  const std::int32_t places = 2 * augmentation.padding + 1;
  // Two coordinates of 16 random bits each.
  const std::int32_t hole_top = uniform(random.words[3], size.height) - augmentation.cutout / 2;
  const std::int32_t hole_left = uniform(random.words[3] << 16, size.width) - augmentation.cutout / 2;
  const bool crops = augmentation.random_crop.changes_images();
  const Rectangle box = crops ? random_crop(augmentation.random_crop, augmentation.seed, task, row, size) : Rectangle{};
  return {.top = uniform(random.words[0], places) - augmentation.padding,
          .left = uniform(random.words[1], places) - augmentation.padding,
          .is_mirrored = augmentation.horizontal_flip && (random.words[2] & 1U) != 0,
          .hole_top = hole_top,
          .hole_bottom = hole_top + augmentation.cutout,
          .hole_left = hole_left,
          .hole_right = hole_left + augmentation.cutout,
          .is_resized = box.height > 0,
          .from_top = static_cast<float>(box.top),
          .from_left = static_cast<float>(box.left),
          .row_step = static_cast<float>(box.height) / static_cast<float>(size.height),
          .column_step = static_cast<float>(box.width) / static_cast<float>(size.width)};
}

// Where a row or column of a rectangle that was brought to the image's size lies in the image: between place `first`
// and the next, `part` of the way. The middles of pixels are half a pixel within them.
struct Between {
  std::int32_t first;
  std::int32_t second;
  float part;
};

ARBALEST_HOST_DEVICE Between place_between(float from, float step, std::int32_t index, std::int32_t places) {
  const float last = static_cast<float>(places - 1);
  const float place = from + (static_cast<float>(index) + 0.5F) * step - 0.5F;
  const float within = place < 0.0F ? 0.0F : (place > last ? last : place);
  const auto first = static_cast<std::int32_t>(within);
  return {.first = first, .second = first + 1 < places ? first + 1 : first, .part = within - static_cast<float>(first)};
}

// Linear interpolation between what four bytes stand for. A rectangle only ever grows, so nothing aliases.
ARBALEST_HOST_DEVICE float resized_value(const AugmentedView& view, const std::uint8_t* pixels, const float* normalized,
                                         ImageSize size, std::int32_t row, std::int32_t column) {
  const Between y = place_between(view.from_top, view.row_step, row, size.height);
  const Between x = place_between(view.from_left, view.column_step, column, size.width);
  const std::uint8_t* upper = pixels + static_cast<std::int64_t>(y.first) * size.width;
  const std::uint8_t* lower = pixels + static_cast<std::int64_t>(y.second) * size.width;
  const float left = normalized[upper[x.first]] + (normalized[lower[x.first]] - normalized[upper[x.first]]) * y.part;
  const float right =
      normalized[upper[x.second]] + (normalized[lower[x.second]] - normalized[upper[x.second]]) * y.part;
  return left + (right - left) * x.part;
}

// The value at (y, x) of the augmented image. `pixels` [height, width]: a channel of the image; `normalized` [256]:
// what its bytes stand for.
ARBALEST_HOST_DEVICE float augmented_value(const AugmentedView& view, const std::uint8_t* pixels,
                                           const float* normalized, ImageSize size, std::int32_t y, std::int32_t x) {
  if (y >= view.hole_top && y < view.hole_bottom && x >= view.hole_left && x < view.hole_right) return 0.0F;
  const std::int32_t row = y + view.top;
  const std::int32_t column = (view.is_mirrored ? size.width - 1 - x : x) + view.left;
  const bool is_inside = row >= 0 && row < size.height && column >= 0 && column < size.width;
  if (view.is_resized && is_inside) return resized_value(view, pixels, normalized, size, row, column);
  return normalized[is_inside ? pixels[static_cast<std::int64_t>(row) * size.width + column] : 0];
}

}  // namespace arbalest::engine::elementwise
