// Labeled examples, images or ids, from which mini-batches are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/ops/augmentation.h"
#include "engine/shape.h"

namespace arbalest::dataflow {

// kValidation: a validation set with files of its own.
enum class Split { kTrain, kTest, kValidation };

constexpr const char* name_of(Split split) noexcept {
  return split == Split::kTrain ? "train" : split == Split::kTest ? "test" : "validation";
}

// Shapes and sizes of a dataset that a model must fit.
struct InputDescription {
  engine::Shape image;       // one example without batch dimension: [c, h, w]; for ids [columns]
  std::int64_t classes = 0;  // labels are in [0, classes); 1 if labels are numbers
  // Number of distinct ids, by column, for datasets of ids with numbers as labels. Empty: images with classes.
  std::vector<std::int64_t> ids = {};

  bool has_ids() const noexcept { return !ids.empty(); }

  bool operator==(const InputDescription&) const = default;
};

// Pixels reach the model as (byte / 255 - mean) / stddev; floating-point pixels as (number - mean) / stddev.
struct Normalization {
  // One number for each channel, or one for all.
  std::vector<float> mean{0.0F};
  std::vector<float> stddev{1.0F};
};

// All examples of a dataset that holds them in memory as bytes.
struct StoredBytes {
  std::span<const std::uint8_t> pixels;  // [n, c, h, w]
  std::span<const std::int32_t> labels;  // [n]
  std::span<const float> normalized;     // [c, 256]: what read() writes for each byte
  engine::Augmentation augmentation;     // applied by read() to the image as well

  std::size_t bytes() const noexcept { return pixels.size_bytes() + labels.size_bytes(); }
};

// Position of an example in the sequence of mini-batches. Random augmentation of its image depends on it.
struct ExamplePlace {
  std::uint64_t batch = 0;
  std::uint32_t row = 0;
};

// Datasets are immutable: any number of threads may read at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // The dataset's name in a job file, with the split: "mnist train".
  virtual const std::string& name() const noexcept = 0;
  virtual const InputDescription& description() const noexcept = 0;
  virtual std::int64_t size() const noexcept = 0;

  // Writes `example`, in [0, size()), in the form that the model reads. An image is normalized, float32 [c, h, w], and
  // augmented if the dataset augments. Ids are int32 [columns], stored in the same 4 bytes each.
  virtual void read(std::int64_t example, const ExamplePlace& place, float* image) const = 0;
  // The example's class; or the bits of the float32 to be predicted (kNoLabel is the bit pattern of a NaN).
  virtual std::int32_t label(std::int64_t example) const = 0;

  // Whether mini-batches leave out an example whose read() throws ErrorKind::kData.
  virtual bool skips_unreadable() const noexcept { return false; }

  // Known host memory of the dataset, without stored_bytes().
  virtual std::size_t memory_bytes() const noexcept { return 0; }

  // Bytes of all examples, valid as long as the dataset; none if it does not hold them as bytes.
  virtual std::optional<StoredBytes> stored_bytes() const noexcept { return std::nullopt; }
};

}  // namespace arbalest::dataflow
