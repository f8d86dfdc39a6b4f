// Labeled examples, images or ids: what batches are made of.
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

enum class Split { kTrain, kTest };

// What a model must expect of a dataset.
struct InputDescription {
  engine::Shape image;       // one example, without batch: [c, h, w]; of ids [columns]
  std::int64_t classes = 0;  // labels are in [0, classes); 1 where they are numbers
  // Examples of ids instead of images, and numbers instead of classes: by column, how many ids there are. Empty:
  // images.
  std::vector<std::int64_t> ids = {};

  bool has_ids() const noexcept { return !ids.empty(); }

  bool operator==(const InputDescription&) const = default;
};

// Pixels reach the model as (byte / 255 - mean) / stddev; those that are numbers as (number - mean) / stddev.
struct Normalization {
  // Of each channel, or one number for all.
  std::vector<float> mean{0.0F};
  std::vector<float> stddev{1.0F};
};

// All examples as a dataset holds them in memory, where it does so as bytes.
struct StoredBytes {
  std::span<const std::uint8_t> pixels;  // [n, c, h, w]
  std::span<const std::int32_t> labels;  // [n]
  std::span<const float> normalized;     // [c, 256]: what read() writes for each byte
  engine::Augmentation augmentation;     // what read() does to the image besides

  std::size_t bytes() const noexcept { return pixels.size_bytes() + labels.size_bytes(); }
};

// Where an example stands in the sequence of mini-batches: what is random in its image depends on that.
struct ExamplePlace {
  std::uint64_t batch = 0;
  std::uint32_t row = 0;
};

// Immutable: any number of threads may read at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // As in a job file, with the split: "mnist train".
  virtual const std::string& name() const noexcept = 0;
  virtual const InputDescription& description() const noexcept = 0;
  virtual std::int64_t size() const noexcept = 0;

  // Writes `example` in [0, size()) as the model reads it: the normalized image as float32 [c, h, w], augmented if the
  // dataset is; or, in the same 4 bytes each, its ids as int32 [columns].
  virtual void read(std::int64_t example, const ExamplePlace& place, float* image) const = 0;
  // Its class; or the bits of the float32 that it is to be predicted as (kNoLabel is those of a NaN).
  virtual std::int32_t label(std::int64_t example) const = 0;

  // Whether a mini-batch is made without an example whose read() throws ErrorKind::kData.
  virtual bool skips_unreadable() const noexcept { return false; }

  // What it is known to take of host memory, besides stored_bytes().
  virtual std::size_t memory_bytes() const noexcept { return 0; }

  // Valid as long as the dataset.
  virtual std::optional<StoredBytes> stored_bytes() const noexcept { return std::nullopt; }
};

}  // namespace arbalest::dataflow
