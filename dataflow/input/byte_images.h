// A dataset of 8-bit images held in memory, normalized when read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "dataflow/input/pixel_transform.h"

namespace arbalest::dataflow {

class ByteImages final : public Dataset {
 public:
  // `pixels` are [n, c, h, w], `labels` [n] and within the description's classes.
  ByteImages(std::string name, const InputDescription& description, const Normalization& normalization,
             std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels);

  // Images are augmented from now on; to be called before any is read.
  void augment(const engine::Augmentation& augmentation) { transform_.augment(augmentation); }

  // What so many examples take of host memory.
  static std::size_t bytes(const InputDescription& description, std::int64_t examples);

  const std::string& name() const noexcept override { return name_; }
  const InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return static_cast<std::int64_t>(labels_.size()); }

  void read(std::int64_t example, const ExamplePlace& place, float* image) const override;
  std::int32_t label(std::int64_t example) const override;
  std::optional<StoredBytes> stored_bytes() const noexcept override {
    return {{pixels_, labels_, transform_.tables(), transform_.augmentation()}};
  }

  // All images and labels as they are stored.
  const std::vector<std::uint8_t>& pixels() const noexcept { return pixels_; }
  const std::vector<std::uint8_t>& labels() const noexcept { return labels_; }

 private:
  std::string name_;
  InputDescription description_;
  std::size_t pixels_per_image_;
  PixelTransform transform_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t> labels_;
};

}  // namespace arbalest::dataflow
