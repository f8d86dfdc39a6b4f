// Turns stored pixels into what the model reads: augmentation and normalization.
#pragma once

#include <cstdint>
#include <vector>

#include "dataflow/input/dataset.h"
#include "engine/base/shape.h"
#include "engine/ops/augmentation.h"

namespace arbalest::dataflow {

class PixelTransform {
 public:
  // `image`: [c, h, w].
  PixelTransform(const engine::Shape& image, const Normalization& normalization);

  // Switches augmentation on.
  void augment(const engine::Augmentation& augmentation) { augmentation_ = augmentation; }

  // Writes `image` from `pixels`; both are [c, h, w]. Pixel is std::uint8_t (gathering on a device writes the same
  // bits, engine/ops/gather_examples.h) or float.
  template <typename Pixel>
  void write(const Pixel* pixels, const ExamplePosition& position, float* image) const;

  // [c, 256]: normalized value of each byte in each channel.
  const std::vector<float>& tables() const noexcept { return tables_; }
  const Normalization& normalization() const noexcept { return normalization_; }
  const engine::Augmentation& augmentation() const noexcept { return augmentation_; }

 private:
  std::int64_t channels_;
  std::int64_t height_;
  std::int64_t width_;
  Normalization normalization_;  // one value per channel
  std::vector<float> tables_;
  engine::Augmentation augmentation_;
};

}  // namespace arbalest::dataflow
