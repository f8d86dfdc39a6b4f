#include "dataflow/input/pixel_transform.h"

#include "engine/elementwise/augmentation.h"
#include "engine/error.h"

namespace arbalest::dataflow {

namespace elementwise = engine::elementwise;

namespace {

constexpr std::int64_t kBytes = 256;  // different ones

float of_channel(const std::vector<float>& values, std::size_t channel) {
  return values.size() == 1 ? values[0] : values.at(channel);
}

}  // namespace

PixelTransform::PixelTransform(const engine::Shape& image, const Normalization& normalization)
    : channels_(image[0]), height_(image[1]), width_(image[2]), tables_(static_cast<std::size_t>(image[0] * kBytes)) {
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const std::size_t channel = i / kBytes;
    const float stddev = of_channel(normalization.stddev, channel);
    ARBALEST_CHECK(stddev > 0.0F);
    tables_[i] = (static_cast<float>(i % kBytes) / 255.0F - of_channel(normalization.mean, channel)) / stddev;
  }
}

void PixelTransform::write(const std::uint8_t* bytes, const ExamplePlace& place, float* image) const {
  const std::int64_t area = height_ * width_;
  const elementwise::ImageSize size{static_cast<std::int32_t>(height_), static_cast<std::int32_t>(width_)};
  const auto view = elementwise::augmented_view(augmentation_, place.batch, place.row, size);
  for (std::int64_t c = 0; c < channels_; ++c, bytes += area, image += area) {
    const float* normalized = tables_.data() + c * kBytes;
    if (!augmentation_.changes_images()) {
      for (std::int64_t i = 0; i < area; ++i) image[i] = normalized[bytes[i]];
      continue;
    }
    for (std::int32_t y = 0; y < size.height; ++y) {
      for (std::int32_t x = 0; x < size.width; ++x) {
        image[y * size.width + x] = elementwise::augmented_value(view, bytes, normalized, size, y, x);
      }
    }
  }
}

}  // namespace arbalest::dataflow
