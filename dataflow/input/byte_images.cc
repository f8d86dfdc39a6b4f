#include "dataflow/input/byte_images.h"

#include <utility>

#include "engine/error.h"

namespace arbalest::dataflow {

ByteImages::ByteImages(std::string name, const InputDescription& description, const Normalization& normalization,
                       std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels)
    : name_(std::move(name)),
      description_(description),
      pixels_per_image_(static_cast<std::size_t>(description.image.elements())),
      transform_(description.image, normalization),
      pixels_(std::move(pixels)),
      labels_(std::move(labels)) {
  ARBALEST_CHECK(pixels_.size() == labels_.size() * pixels_per_image_);
}

std::size_t ByteImages::bytes(const InputDescription& description, std::int64_t examples) {
  return static_cast<std::size_t>(examples * (description.image.elements() + 1));
}

void ByteImages::read(std::int64_t example, const ExamplePlace& place, float* image) const {
  ARBALEST_CHECK(example >= 0 && example < size());
  transform_.write(pixels_.data() + static_cast<std::size_t>(example) * pixels_per_image_, place, image);
}

std::int32_t ByteImages::label(std::int64_t example) const {
  ARBALEST_CHECK(example >= 0 && example < size());
  return labels_[static_cast<std::size_t>(example)];
}

}  // namespace arbalest::dataflow
