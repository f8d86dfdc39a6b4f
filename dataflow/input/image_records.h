// Encoded images in TFRecord shards of tf.train.Example: the image file as "image/encoded", its class as
// "image/class/label".
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/encoded_images.h"

namespace arbalest::dataflow {

struct ImageRecordsSource {
  std::filesystem::path directory;
  std::string pattern;           // of the shards' names, with '*' and '?'; they are read in the order of their names
  std::int64_t first_label = 0;  // that stands for class 0: 1 where 0 means "none of the classes"
  std::int64_t classes = 0;
  // Of records whose data is damaged or no such example.
  OnUnreadable on_unreadable = OnUnreadable::kStop;
};

// Labels are read at once, without the images beside them, shard by shard on `pool`; not to be called by a task of it.
// Throws ErrorKind::kData, naming shard and record, if there is no shard or one is incomplete, if a label is out of
// range, and if a record has no label. Where those are to be skipped, they are examples that cannot be read
// instead; as is any record whose checksum is wrong, which shows when it is read.
std::unique_ptr<const EncodedExamples> open_image_records(const ImageRecordsSource& source, engine::host::Pool& pool);

struct ImageRecord {
  std::int64_t label = 0;
  std::vector<std::uint8_t> file;
};

// From and to the data of a record. read throws ErrorKind::kData, without the record, if a feature is missing.
ImageRecord read_image_record(std::span<const std::uint8_t> data);
std::vector<std::uint8_t> make_image_record(const ImageRecord& record, const std::string& class_name);

}  // namespace arbalest::dataflow
