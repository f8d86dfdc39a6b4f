#include "dataflow/input/images/stored_images.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "engine/base/error.h"

namespace arbalest::dataflow {

template <typename Pixel>
StoredImages<Pixel>::StoredImages(std::string name, const InputDescription& description,
                                  const Normalization& normalization, std::vector<Pixel> pixels,
                                  std::vector<std::int32_t> labels)
    : name_(std::move(name)),
      description_(description),
      pixels_per_image_(static_cast<std::size_t>(description.image().elements())),
      transform_(description.image(), normalization),
      pixels_(std::move(pixels)),
      labels_(std::move(labels)) {
  ARBALEST_CHECK(pixels_.size() == labels_.size() * pixels_per_image_);
}

template <typename Pixel>
std::size_t StoredImages<Pixel>::bytes(const InputDescription& description, std::int64_t examples) {
  return static_cast<std::size_t>(examples) *
         (static_cast<std::size_t>(description.image().elements()) * sizeof(Pixel) + sizeof(std::int32_t));
}

template <typename Pixel>
void StoredImages<Pixel>::read(std::int64_t example, const ExamplePosition& position,
                               std::span<const InputTensor> features) const {
  ARBALEST_CHECK(example >= 0 && example < size());
  transform_.write(pixels_.data() + static_cast<std::size_t>(example) * pixels_per_image_, position,
                   features.front().as<float>().data());
}

template <typename Pixel>
void StoredImages<Pixel>::read_label(std::int64_t example, const InputTensor& label) const {
  ARBALEST_CHECK(example >= 0 && example < size());
  label.as<std::int32_t>().front() = labels_[static_cast<std::size_t>(example)];
}

template <typename Pixel>
std::size_t StoredImages<Pixel>::memory_bytes() const noexcept {
  return bytes(description_, split_off_ + (stored_bytes() ? 0 : size()));
}

template <typename Pixel>
void StoredImages<Pixel>::keep_checksums(std::span<const ReadExample> files) {
  ARBALEST_CHECK(files.size() == labels_.size());
  checksums_.clear();
  for (const ReadExample& file : files) checksums_.push_back(file.checksum);
}

template <typename Pixel>
std::vector<ReadExample> StoredImages<Pixel>::take_read_log() const {
  std::vector<ReadExample> files;
  for (const std::uint32_t checksum : std::exchange(checksums_, {})) {
    files.push_back({static_cast<std::uint32_t>(files.size()), checksum});
  }
  return files;
}

template <typename Pixel>
std::unique_ptr<StoredImages<Pixel>> StoredImages<Pixel>::split_off(std::string name,
                                                                    std::span<const std::int64_t> examples) {
  std::vector<Pixel> pixels;
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> checksums;
  pixels.reserve(examples.size() * pixels_per_image_);
  labels.reserve(examples.size());
  std::size_t kept = 0;
  auto next = examples.begin();
  for (std::size_t example = 0; example < labels_.size(); ++example) {
    const auto image = pixels_.begin() + static_cast<std::ptrdiff_t>(example * pixels_per_image_);
    const auto end = image + static_cast<std::ptrdiff_t>(pixels_per_image_);
    if (next != examples.end() && std::cmp_equal(*next, example)) {
      pixels.insert(pixels.end(), image, end);
      labels.push_back(labels_[example]);
      if (!checksums_.empty()) checksums.push_back(checksums_[example]);
      ++next;
      continue;
    }
    if (kept != example) std::copy(image, end, pixels_.begin() + static_cast<std::ptrdiff_t>(kept * pixels_per_image_));
    if (!checksums_.empty()) checksums_[kept] = checksums_[example];
    labels_[kept++] = labels_[example];
  }
  ARBALEST_CHECK(next == examples.end());
  pixels_.resize(kept * pixels_per_image_);
  labels_.resize(kept);
  if (!checksums_.empty()) checksums_.resize(kept);
  split_off_ += std::ssize(examples);
  auto images = std::make_unique<StoredImages>(std::move(name), description_, transform_.normalization(),
                                               std::move(pixels), std::move(labels));
  images->checksums_ = std::move(checksums);
  return images;
}

template <typename Pixel>
void StoredImages<Pixel>::append(const StoredImages& other) {
  ARBALEST_CHECK(description_ == other.description_ && transform_.tables() == other.transform_.tables());
  pixels_.reserve(pixels_.size() + other.pixels_.size());  // no more than is needed
  pixels_.insert(pixels_.end(), other.pixels_.begin(), other.pixels_.end());
  labels_.insert(labels_.end(), other.labels_.begin(), other.labels_.end());
  const bool has_all = !checksums_.empty() && !other.checksums_.empty();
  if (has_all) checksums_.insert(checksums_.end(), other.checksums_.begin(), other.checksums_.end());
  if (!has_all) checksums_.clear();
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
