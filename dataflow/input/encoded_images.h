// A dataset of JPEG and PNG images that are decoded each time that they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "dataflow/input/pixel_transform.h"
#include "dataflow/input/stored_images.h"
#include "engine/host/pool.h"

namespace arbalest::dataflow {

// Where encoded images come from. Immutable: any number of threads may read at once.
class EncodedExamples {
 public:
  virtual ~EncodedExamples() = default;

  virtual std::int64_t size() const noexcept = 0;
  virtual std::int32_t label(std::int64_t example) const = 0;
  // The bytes of an image file. Throws ErrorKind::kData, naming the record.
  virtual std::vector<std::uint8_t> read(std::int64_t example) const = 0;
  // The record, for errors: a file, or a place in one.
  virtual std::string record(std::int64_t example) const = 0;
};

// How images of any size become images of the description's.
struct Framing {
  // The shorter side is brought to this, then the center is cut out; at least as long as both sides of the model's
  // images. None: images must have their size.
  std::optional<int> resize;
  std::optional<engine::RandomResizedCrop> random_crop;  // instead of that
  std::uint64_t seed = 0;                                // of random_crop

  bool operator==(const Framing&) const = default;
};

// What to do with an example that cannot be read or decoded.
enum class OnUnreadable {
  kStop,  // throw, naming the record
  kSkip   // leave it out, and count it
};

class EncodedImages final : public Dataset {
 public:
  // description.image: [1, h, w] or [3, h, w].
  EncodedImages(std::string name, const InputDescription& description, const Normalization& normalization,
                std::unique_ptr<const EncodedExamples> examples, const Framing& framing, OnUnreadable on_unreadable);

  // Images are augmented from now on; to be called before any is read.
  void augment(const engine::Augmentation& augmentation) { transform_.augment(augmentation); }

  const std::string& name() const noexcept override { return name_; }
  const InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return examples_->size(); }

  // Throws ErrorKind::kData, naming the record and the likely fix, for what cannot be read or decoded, and for images
  // of another size where the framing brings them to none.
  void read(std::int64_t example, const ExamplePlace& place, float* image) const override;
  std::int32_t label(std::int64_t example) const override { return examples_->label(example); }
  bool skips_unreadable() const noexcept override { return on_unreadable_ == OnUnreadable::kSkip; }

  // read() before augmentation and normalization: bytes [c, h, w].
  void decode(std::int64_t example, const ExamplePlace& place, std::uint8_t* pixels) const;

  // Whether decode() depends on the place.
  bool is_random() const noexcept { return framing_.random_crop.has_value(); }

  // All images decoded on `pool`, with the same bits as read() gives; waits for it, and is not to be called by a task
  // of it. Not for random framings. Null, and a warning, if some are unreadable and are to be left out: mini-batches
  // have holes in their places, which only read() brings about. Throws as read(), and ErrorKind::kData if none is
  // readable.
  std::unique_ptr<ByteImages> decode_all(engine::host::Pool& pool, std::vector<std::string>& warnings) const;

 private:
  void decode_file(std::int64_t example, const ExamplePlace& place, std::uint8_t* pixels) const;

  std::string name_;
  InputDescription description_;
  PixelTransform transform_;
  std::unique_ptr<const EncodedExamples> examples_;
  Framing framing_;
  OnUnreadable on_unreadable_;
};

}  // namespace arbalest::dataflow
