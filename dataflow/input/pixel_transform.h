// From what is stored to what the model sees: augmentation and normalization.
#pragma once

#include <cstdint>
#include <vector>

#include "dataflow/input/dataset.h"
#include "engine/ops/augmentation.h"
#include "engine/shape.h"

namespace arbalest::dataflow {

class PixelTransform {
 public:
  // `image`: [c, h, w].
  PixelTransform(const engine::Shape& image, const Normalization& normalization);

  // Images are augmented from now on.
  void augment(const engine::Augmentation& augmentation) { augmentation_ = augmentation; }

  // Both [c, h, w]; bytes (std::uint8_t), of which a gathering writes the same bits (engine/ops/gather_examples.h), or
  // numbers (float).
  template <typename Pixel>
  void write(const Pixel* pixels, const ExamplePlace& place, float* image) const;

  // [c, 256]: what each byte of each channel becomes.
  const std::vector<float>& tables() const noexcept { return tables_; }
  const Normalization& normalization() const noexcept { return normalization_; }
  const engine::Augmentation& augmentation() const noexcept { return augmentation_; }

 private:
  std::int64_t channels_;
  std::int64_t height_;
  std::int64_t width_;
  Normalization normalization_;  // of each channel
  std::vector<float> tables_;
  engine::Augmentation augmentation_;
};

}  // namespace arbalest::dataflow
