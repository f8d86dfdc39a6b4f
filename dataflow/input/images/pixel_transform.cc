#include "dataflow/input/images/pixel_transform.h"

#include <algorithm>
#include <type_traits>

#include "engine/base/error.h"
#include "engine/elementwise/augmentation.h"

namespace arbalest::dataflow {

namespace elementwise = engine::elementwise;

namespace {

constexpr std::size_t kBytes = 256;  // number of byte values

std::vector<float> of_channels(const std::vector<float>& values, std::size_t channels) {
  if (values.size() == 1) return std::vector<float>(channels, values[0]);
  ARBALEST_CHECK(values.size() == channels);
  return values;
}

}  // namespace

PixelTransform::PixelTransform(const engine::Shape& image, const Normalization& normalization)
    : channels_(image[0]), height_(image[1]), width_(image[2]) {
  const auto channels = static_cast<std::size_t>(channels_);
  normalization_ = {of_channels(normalization.mean, channels), of_channels(normalization.stddev, channels)};
  ARBALEST_CHECK(std::ranges::all_of(normalization_.stddev, [](float stddev) { return stddev > 0.0F; }));
  tables_.reserve(channels * kBytes);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t byte = 0; byte < kBytes; ++byte) {
      tables_.push_back((static_cast<float>(byte) / 255.0F - normalization_.mean[c]) / normalization_.stddev[c]);
    }
  }
}

template <typename Pixel>
void PixelTransform::write(const Pixel* pixels, const ExamplePosition& position, float* image) const {
  const auto channel_of = [&](std::size_t c) {
    if constexpr (std::is_same_v<Pixel, std::uint8_t>) {
      return elementwise::ByteChannel{pixels, tables_.data() + c * kBytes};
    } else {
      return elementwise::FloatChannel{pixels, normalization_.mean[c], normalization_.stddev[c]};
    }
  };
  const std::int64_t area = height_ * width_;
  const elementwise::ImageSize size{static_cast<std::int32_t>(height_), static_cast<std::int32_t>(width_)};
  const auto view = elementwise::augmented_view(augmentation_, position.batch, position.row, size);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels_); ++c, pixels += area, image += area) {
    const auto channel = channel_of(c);
    if (!augmentation_.changes_images()) {
      for (std::int64_t i = 0; i < area; ++i) image[i] = channel.value(i);
      continue;
    }
    for (std::int32_t y = 0; y < size.height; ++y) {
      for (std::int32_t x = 0; x < size.width; ++x) {
        image[y * size.width + x] = elementwise::augmented_value(view, channel, size, y, x);
      }
    }
  }
}

template void PixelTransform::write<std::uint8_t>(const std::uint8_t* pixels, const ExamplePosition& position,
                                                  float* image) const;
template void PixelTransform::write<float>(const float* pixels, const ExamplePosition& position, float* image) const;

}  // namespace arbalest::dataflow
