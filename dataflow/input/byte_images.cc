#include "dataflow/input/byte_images.h"

#include <utility>

#include "engine/error.h"

namespace arbalest::dataflow {

ByteImages::ByteImages(std::string name, const InputDescription& description, Normalization normalization,
                       std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels)
    : name_(std::move(name)),
      description_(description),
      pixels_per_image_(static_cast<std::size_t>(description.image.elements())),
      normalized_{},
      pixels_(std::move(pixels)),
      labels_(std::move(labels)) {
  ARBALEST_CHECK(normalization.stddev > 0.0F);
  ARBALEST_CHECK(pixels_.size() == labels_.size() * pixels_per_image_);
  for (std::size_t byte = 0; byte < normalized_.size(); ++byte) {
    normalized_[byte] = (static_cast<float>(byte) / 255.0F - normalization.mean) / normalization.stddev;
  }
}

std::size_t ByteImages::bytes(const InputDescription& description, std::int64_t examples) {
  return static_cast<std::size_t>(examples * (description.image.elements() + 1));
}

void ByteImages::read(std::int64_t example, float* image) const {
  ARBALEST_CHECK(example >= 0 && example < size());
  const std::uint8_t* bytes = pixels_.data() + static_cast<std::size_t>(example) * pixels_per_image_;
  for (std::size_t i = 0; i < pixels_per_image_; ++i) image[i] = normalized_[bytes[i]];
}

std::int32_t ByteImages::label(std::int64_t example) const {
  ARBALEST_CHECK(example >= 0 && example < size());
  return labels_[static_cast<std::size_t>(example)];
}

}  // namespace arbalest::dataflow
