// Labeled examples from which mini-batches are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/input_description.h"
#include "dataflow/input/input_tensor.h"
#include "dataflow/input/read_log.h"
#include "engine/ops/augmentation.h"

namespace arbalest::dataflow {

// kValidation: a validation set with files of its own.
enum class Split { kTrain, kTest, kValidation };

constexpr const char* name_of(Split split) noexcept {
  return split == Split::kTrain ? "train" : split == Split::kTest ? "test" : "validation";
}

// Pixels reach the model as (byte / 255 - mean) / stddev; floating-point pixels as (number - mean) / stddev.
struct Normalization {
  // One number for each channel, or one for all.
  std::vector<float> mean{0.0F};
  std::vector<float> stddev{1.0F};
};

// All examples of a dataset of images with classes that holds them in memory as bytes.
struct StoredBytes {
  std::span<const std::uint8_t> pixels;  // [n, c, h, w]
  std::span<const std::int32_t> labels;  // [n]
  std::span<const float> normalized;     // [c, 256]: what read() writes for each byte
  engine::Augmentation augmentation;     // applied by read() to the image as well

  std::size_t bytes() const noexcept { return pixels.size_bytes() + labels.size_bytes(); }
};

// Position of an example in the sequence of mini-batches. Random augmentation of its image depends on it.
struct ExamplePosition {
  std::uint64_t batch = 0;
  std::uint32_t row = 0;
};

// The examples of a dataset do not change: any number of threads may read at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // The dataset's name in a job file, with the split: "mnist train".
  virtual const std::string& name() const noexcept = 0;
  virtual const InputDescription& description() const noexcept = 0;
  virtual std::int64_t size() const noexcept = 0;

  // Writes the features of `example`, in [0, size()), as the model reads them. `features`: one tensor for each of the
  // description's features, in their order. An image is normalized, and augmented if the dataset augments.
  virtual void read(std::int64_t example, const ExamplePosition& position,
                    std::span<const InputTensor> features) const = 0;
  // Writes the example's label.
  virtual void read_label(std::int64_t example, const InputTensor& label) const = 0;

  // Whether mini-batches leave out an example whose read() throws ErrorKind::kData.
  virtual bool skips_unreadable() const noexcept { return false; }

  // Whether read() reads some of the examples from files, rather than from memory.
  virtual bool reads_files() const noexcept { return false; }
  // From here on the dataset notes what it reads from files. Call it before the reads that are to be noted.
  virtual void begin_read_log() const {}
  // Returns the examples that were read from files since the last call, in ascending order.
  virtual std::vector<ReadExample> take_read_log() const { return {}; }
  // Names an example in messages: its file, or its place in one.
  virtual std::string record(std::int64_t example) const;

  // What reading has shown so far that the user should know: one line for each kind of problem.
  virtual std::vector<std::string> warnings() const { return {}; }

  // Known host memory of the dataset, without stored_bytes().
  virtual std::size_t memory_bytes() const noexcept { return 0; }

  // Bytes of all examples, valid as long as the dataset; none if it does not hold them as bytes.
  virtual std::optional<StoredBytes> stored_bytes() const noexcept { return std::nullopt; }
};

// Returns the class of an example. The dataset must have classes.
std::int32_t class_of(const Dataset& data, std::int64_t example);

}  // namespace arbalest::dataflow
