// A dataset of JPEG, PNG and WebP images, decoded each time they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "dataflow/input/images/pixel_rules.h"
#include "dataflow/input/images/pixel_transform.h"
#include "dataflow/input/images/stored_images.h"
#include "dataflow/input/skip_limit.h"
#include "engine/host/pool.h"

namespace arbalest::dataflow {

// A source of encoded images. Immutable: any number of threads may read at once.
class EncodedExamples {
 public:
  virtual ~EncodedExamples() = default;

  virtual std::int64_t size() const noexcept = 0;
  virtual std::int32_t label(std::int64_t example) const = 0;
  // The bytes of an image file. Throws ErrorKind::kData, naming the record.
  virtual std::vector<std::uint8_t> read(std::int64_t example) const = 0;
  // Name of the record for errors: a file, or a place in one.
  virtual std::string record(std::int64_t example) const = 0;
};

// Brings an image of any size to the description's size.
struct Framing {
  // Length that the image's shorter side is scaled to; then the center is cut out. At least as long as both sides of
  // the model's images. None: images must already have the model's size.
  std::optional<int> resize;
  std::optional<engine::RandomResizedCrop> random_crop;  // replaces `resize`
  std::uint64_t seed = 0;                                // seed of random_crop

  bool operator==(const Framing&) const = default;
};

// The treatment of an example that cannot be read or decoded.
enum class OnUnreadable {
  kStop,  // throw, naming the record
  kSkip   // leave the example out and count it
};

class EncodedImages final : public Dataset {
 public:
  // The shape of the images must be [1, h, w] or [3, h, w].
  EncodedImages(std::string name, const InputDescription& description, const Normalization& normalization,
                std::unique_ptr<const EncodedExamples> examples, const Framing& framing, const PixelRules& rules,
                OnUnreadable on_unreadable);

  // Switches augmentation on. Must be called before any image is read.
  void augment(const engine::Augmentation& augmentation) { transform_.augment(augmentation); }

  const std::string& name() const noexcept override { return name_; }
  const InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return examples_->size(); }

  // Throws ErrorKind::kData, naming the record and the likely fix, if the example cannot be read or decoded, or if its
  // size differs from the model's and the framing does not resize.
  void read(std::int64_t example, const ExamplePosition& position,
            std::span<const InputTensor> features) const override;
  void read_label(std::int64_t example, const InputTensor& label) const override {
    label.as<std::int32_t>().front() = examples_->label(example);
  }
  bool skips_unreadable() const noexcept override { return on_unreadable_ == OnUnreadable::kSkip; }
  bool reads_files() const noexcept override { return true; }
  void begin_read_log() const override { log_.turn(true); }
  std::vector<ReadExample> take_read_log() const override { return log_.take(); }
  std::string record(std::int64_t example) const override { return examples_->record(example); }
  // Names the images that were read although their EXIF orientation is damaged: how many, and the first.
  std::vector<std::string> warnings() const override;

  // Does the part of read() before augmentation and normalization: writes bytes [c, h, w].
  void decode(std::int64_t example, const ExamplePosition& position, std::uint8_t* pixels) const;

  // Whether decode() depends on `place`.
  bool is_random() const noexcept { return framing_.random_crop.has_value(); }

  // Decodes all images on `pool`, to the same bits as read(), and waits; a task of the pool must not call this. Framing
  // must not be random. Returns null, with a warning, if unreadable images must be skipped, because only read() can
  // leave an example out of a mini-batch. Throws as read(), and ErrorKind::kData if no image is readable, or if more
  // than `limit` allows must be skipped.
  std::unique_ptr<ByteImages> decode_all(engine::host::Pool& pool, std::vector<std::string>& warnings,
                                         const SkipLimit& limit = {}) const;

 private:
  std::vector<std::uint8_t> read_file(std::int64_t example) const;
  void decode_file(std::int64_t example, const ExamplePosition& position, std::uint8_t* pixels) const;

  std::string name_;
  InputDescription description_;
  PixelTransform transform_;
  std::unique_ptr<const EncodedExamples> examples_;
  Framing framing_;
  PixelRules rules_;
  OnUnreadable on_unreadable_;
  mutable ReadLog log_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, std::string> damaged_orientations_;  // by example: what is damaged
};

}  // namespace arbalest::dataflow
