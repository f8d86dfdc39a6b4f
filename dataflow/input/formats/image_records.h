// Reads encoded images from TFRecord shards of tf.train.Example: "image/encoded" holds the image file,
// "image/class/label" its class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/images/encoded_images.h"

namespace arbalest::dataflow {

struct ImageRecordsSource {
  std::filesystem::path directory;
  // Pattern of the shards' names, with '*' and '?'. Shards are read in the order of their names.
  std::string pattern;
  std::int64_t first_label = 0;  // label of class 0; it is 1 where label 0 means "none of the classes"
  std::int64_t classes = 0;
  // For records whose data is damaged or not a valid example.
  OnUnreadable on_unreadable = OnUnreadable::kStop;
  // Patterns of other splits, which may match none of these shards.
  std::vector<std::string> other_patterns = {};
};

// Reads all labels at once, without the images, with one task of `pool` per shard; a task of the pool must not call
// this. Throws ErrorKind::kData, naming shard and record, if there is no shard, a shard is incomplete or belongs to
// another split, too, a label is out of range or a record has no label. With OnUnreadable::kSkip, a record without a
// label becomes an example that cannot be read instead. A wrong checksum shows only when the record is read.
std::unique_ptr<const EncodedExamples> open_image_records(const ImageRecordsSource& source, engine::host::Pool& pool);

struct ImageRecord {
  std::int64_t label = 0;
  std::vector<std::uint8_t> file;
};

// Parse and build the data of a record. read_image_record throws ErrorKind::kData, without naming the record, if a
// feature is missing.
ImageRecord read_image_record(std::span<const std::uint8_t> data);
std::vector<std::uint8_t> make_image_record(const ImageRecord& record, const std::string& class_name);

}  // namespace arbalest::dataflow
