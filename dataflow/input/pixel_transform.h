// From bytes to what the model sees: augmentation and normalization.
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

  // Both [c, h, w]. The same bits as a gathering of these bytes writes (engine/ops/gather_examples.h).
  void write(const std::uint8_t* bytes, const ExamplePlace& place, float* image) const;

  // [c, 256]: what each byte of each channel becomes.
  const std::vector<float>& tables() const noexcept { return tables_; }
  const engine::Augmentation& augmentation() const noexcept { return augmentation_; }

 private:
  std::int64_t channels_;
  std::int64_t height_;
  std::int64_t width_;
  std::vector<float> tables_;
  engine::Augmentation augmentation_;
};

}  // namespace arbalest::dataflow
