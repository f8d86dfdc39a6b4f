// Datasets of images in host memory, normalized when read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "dataflow/input/images/pixel_transform.h"

namespace arbalest::dataflow {

// Pixel is std::uint8_t or float.
template <typename Pixel>
class StoredImages final : public Dataset {
 public:
  // `pixels` are [n, c, h, w], `labels` [n] and within the description's classes.
  StoredImages(std::string name, const InputDescription& description, const Normalization& normalization,
               std::vector<Pixel> pixels, std::vector<std::int32_t> labels);

  // Switches augmentation on. Must be called before any image is read.
  void augment(const engine::Augmentation& augmentation) { transform_.augment(augmentation); }

  // Keeps the checksums of the files that all examples come from, for take_read_log().
  void keep_checksums(std::span<const ReadExample> files);

  // Moves the examples with these numbers, which must ascend, into a new dataset, which does not augment. The remaining
  // examples close up. This dataset keeps its memory; memory_bytes() counts the part that is no longer used.
  std::unique_ptr<StoredImages> split_off(std::string name, std::span<const std::int64_t> examples);
  // Adds the examples of `other`, which has the same description and normalization.
  void append(const StoredImages& other);

  // Host memory that this many examples take.
  static std::size_t bytes(const InputDescription& description, std::int64_t examples);

  const std::string& name() const noexcept override { return name_; }
  const InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return static_cast<std::int64_t>(labels_.size()); }

  void read(std::int64_t example, const ExamplePosition& position,
            std::span<const InputTensor> features) const override;
  void read_label(std::int64_t example, const InputTensor& label) const override;
  // All files that were read to make the dataset, at the first call.
  std::vector<ReadExample> take_read_log() const override;
  // Counts memory that split_off() left unused, and the examples themselves if they are floats.
  std::size_t memory_bytes() const noexcept override;
  // None for floats.
  std::optional<StoredBytes> stored_bytes() const noexcept override;

  // All images and labels as they are stored.
  const std::vector<Pixel>& pixels() const noexcept { return pixels_; }
  const std::vector<std::int32_t>& labels() const noexcept { return labels_; }

 private:
  std::string name_;
  InputDescription description_;
  std::size_t pixels_per_image_;
  PixelTransform transform_;
  std::vector<Pixel> pixels_;
  std::vector<std::int32_t> labels_;
  mutable std::vector<std::uint32_t> checksums_;  // of the examples' files; empty: there are none, or they were taken
  std::int64_t split_off_ = 0;                    // number of examples that were moved out but whose memory is kept
};

extern template class StoredImages<std::uint8_t>;
extern template class StoredImages<float>;
using ByteImages = StoredImages<std::uint8_t>;
using FloatImages = StoredImages<float>;

}  // namespace arbalest::dataflow
