// The pixels of an augmented image. Padding, cropping and flipping as in He et al., "Deep residual learning for image
// recognition" (2016), section 4.2; cutout as in DeVries and Taylor (2017): the square may reach over the border.
#pragma once

#include <cstdint>

#include "engine/elementwise/philox.h"
#include "engine/elementwise/portable.h"
#include "engine/elementwise/random_crop.h"
#include "engine/ops/augmentation.h"

namespace arbalest::engine::elementwise {

// The random choices for one image.
struct AugmentedView {
  std::int32_t top;  // of the window, relative to the image without padding: in [-padding, padding]
  std::int32_t left;
  bool is_mirrored;
  std::int32_t hole_top;  // cut-out square in the augmented image; its ends are exclusive
  std::int32_t hole_bottom;
  std::int32_t hole_left;
  std::int32_t hole_right;
  bool is_resized;  // whether a rectangle is first scaled to the image's size
  float from_top;   // place of the rectangle in the stored image
  float from_left;
  float row_step;  // distance in the stored image between rows and columns of the scaled one
  float column_step;
};

// `row`: the example's row in mini-batch `task`. Sides must be below 2^16.
ARBALEST_HOST_DEVICE AugmentedView augmented_view(const Augmentation& augmentation, std::uint64_t task,
                                                  std::uint32_t row, ImageSize size) {
  const PhiloxCounter random = random_of_row(augmentation.seed, task, row, kAugmentationLayer);
  const std::int32_t places = 2 * augmentation.padding + 1;
  // Each coordinate uses 16 random bits.
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

// Position in the stored image of a row or column of the scaled rectangle: `part` of the way from place `first` to
// `second`. The middle of a pixel is half a pixel after its edge.
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

// A channel [height, width] of an image stored as bytes.
struct ByteChannel {
  const std::uint8_t* pixels;
  const float* normalized;  // [256]: normalized value of each byte

  ARBALEST_HOST_DEVICE float value(std::int64_t place) const { return normalized[pixels[place]]; }
  ARBALEST_HOST_DEVICE float black() const { return normalized[0]; }
};

// A channel [height, width] of an image stored as floating-point numbers.
struct FloatChannel {
  const float* pixels;
  float mean;
  float stddev;

  ARBALEST_HOST_DEVICE float value(std::int64_t place) const { return (pixels[place] - mean) / stddev; }
  ARBALEST_HOST_DEVICE float black() const { return (0.0F - mean) / stddev; }
};

// Linear interpolation between four pixels. A rectangle is only ever enlarged, so there is no aliasing.
template <typename Channel>
ARBALEST_HOST_DEVICE float resized_value(const AugmentedView& view, const Channel& channel, ImageSize size,
                                         std::int32_t row, std::int32_t column) {
  const Between y = place_between(view.from_top, view.row_step, row, size.height);
  const Between x = place_between(view.from_left, view.column_step, column, size.width);
  const std::int64_t upper = static_cast<std::int64_t>(y.first) * size.width;
  const std::int64_t lower = static_cast<std::int64_t>(y.second) * size.width;
  const float upper_left = channel.value(upper + x.first);
  const float upper_right = channel.value(upper + x.second);
  const float left = upper_left + (channel.value(lower + x.first) - upper_left) * y.part;
  const float right = upper_right + (channel.value(lower + x.second) - upper_right) * y.part;
  return left + (right - left) * x.part;
}

// The value at (y, x) of the augmented image; `channel`: the stored channel.
template <typename Channel>
ARBALEST_HOST_DEVICE float augmented_value(const AugmentedView& view, const Channel& channel, ImageSize size,
                                           std::int32_t y, std::int32_t x) {
  if (y >= view.hole_top && y < view.hole_bottom && x >= view.hole_left && x < view.hole_right) return 0.0F;
  const std::int32_t row = y + view.top;
  const std::int32_t column = (view.is_mirrored ? size.width - 1 - x : x) + view.left;
  const bool is_inside = row >= 0 && row < size.height && column >= 0 && column < size.width;
  if (!is_inside) return channel.black();
  if (view.is_resized) return resized_value(view, channel, size, row, column);
  return channel.value(static_cast<std::int64_t>(row) * size.width + column);
}

}  // namespace arbalest::engine::elementwise
