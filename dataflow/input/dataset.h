// Labeled images that fit into memory: what batches are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/shape.h"

namespace arbalest::dataflow {

enum class Split { kTrain, kTest };

// What a model must expect of a dataset.
struct InputDescription {
  engine::Shape image;       // one example, without batch: [c, h, w]
  std::int64_t classes = 0;  // labels are in [0, classes)

  bool operator==(const InputDescription&) const = default;
};

// Pixels reach the model as (byte / 255 - mean) / stddev.
struct Normalization {
  float mean = 0.0F;
  float stddev = 1.0F;
};

// All examples as a dataset holds them in memory, where it does so as bytes.
struct StoredBytes {
  std::span<const std::uint8_t> pixels;  // [n, c, h, w]
  std::span<const std::uint8_t> labels;  // [n]
  std::span<const float> normalized;     // [256]: what read() writes for each byte
};

// Immutable: any number of threads may read at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // As in a job file, with the split: "mnist train".
  virtual const std::string& name() const noexcept = 0;
  virtual const InputDescription& description() const noexcept = 0;
  virtual std::int64_t size() const noexcept = 0;

  // Writes the normalized image of `example` in [0, size()) as float32 [c, h, w].
  virtual void read(std::int64_t example, float* image) const = 0;
  virtual std::int32_t label(std::int64_t example) const = 0;

  // Valid as long as the dataset.
  virtual std::optional<StoredBytes> stored_bytes() const noexcept { return std::nullopt; }
};

}  // namespace arbalest::dataflow
