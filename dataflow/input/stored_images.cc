#include "dataflow/input/stored_images.h"

#include <type_traits>
#include <utility>

#include "engine/error.h"

namespace arbalest::dataflow {

template <typename Pixel>
StoredImages<Pixel>::StoredImages(std::string name, const InputDescription& description,
                                  const Normalization& normalization, std::vector<Pixel> pixels,
                                  std::vector<std::int32_t> labels)
    : name_(std::move(name)),
      description_(description),
      pixels_per_image_(static_cast<std::size_t>(description.image.elements())),
      transform_(description.image, normalization),
      pixels_(std::move(pixels)),
      labels_(std::move(labels)) {
  ARBALEST_CHECK(pixels_.size() == labels_.size() * pixels_per_image_);
}

template <typename Pixel>
std::size_t StoredImages<Pixel>::bytes(const InputDescription& description, std::int64_t examples) {
  return static_cast<std::size_t>(examples) *
         (static_cast<std::size_t>(description.image.elements()) * sizeof(Pixel) + sizeof(std::int32_t));
}

template <typename Pixel>
void StoredImages<Pixel>::read(std::int64_t example, const ExamplePlace& place, float* image) const {
  ARBALEST_CHECK(example >= 0 && example < size());
  transform_.write(pixels_.data() + static_cast<std::size_t>(example) * pixels_per_image_, place, image);
}

template <typename Pixel>
std::int32_t StoredImages<Pixel>::label(std::int64_t example) const {
  ARBALEST_CHECK(example >= 0 && example < size());
  return labels_[static_cast<std::size_t>(example)];
}

template <typename Pixel>
std::size_t StoredImages<Pixel>::memory_bytes() const noexcept {
  return stored_bytes() ? 0 : bytes(description_, size());
}

template <typename Pixel>
std::optional<StoredBytes> StoredImages<Pixel>::stored_bytes() const noexcept {
  if constexpr (std::is_same_v<Pixel, std::uint8_t>) {
    return StoredBytes{pixels_, labels_, transform_.tables(), transform_.augmentation()};
  }
  return std::nullopt;
}

template class StoredImages<std::uint8_t>;
template class StoredImages<float>;

}  // namespace arbalest::dataflow
