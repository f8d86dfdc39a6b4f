#include "dataflow/input/formats/records/example_feature.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "tensorflow/example.pb.h"

namespace arbalest::dataflow {

namespace {

namespace io = google::protobuf::io;
using google::protobuf::internal::WireFormatLite;

// The data of a record as a stream; bytes are read from the file only when they are asked for.
class RecordStream final : public io::CopyingInputStream {
 public:
  RecordStream(const RecordFile& file, std::size_t record) : file_(file), record_(record) {}

  int Read(void* buffer, int size) override {
    const std::span out(static_cast<std::uint8_t*>(buffer), static_cast<std::size_t>(size));
    const std::size_t count = file_.read_part(record_, position_, out);
    position_ += count;
    return static_cast<int>(count);
  }
  int Skip(int count) override {
    const std::uint64_t left = file_.bytes(record_) - position_;
    const std::uint64_t skipped = std::min(left, static_cast<std::uint64_t>(count));
    position_ += skipped;
    return static_cast<int>(skipped);
  }

 private:
  const RecordFile& file_;
  std::size_t record_;
  std::uint64_t position_ = 0;
};

// Skips to the next field with that number, a message or bytes, and limits reading to it. Returns the previous limit;
// none if there is no such field.
std::optional<io::CodedInputStream::Limit> enter(io::CodedInputStream& in, int number) {
  const std::uint32_t wanted = WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  for (std::uint32_t tag = in.ReadTag(); tag != 0; tag = in.ReadTag()) {
    if (tag != wanted) {
      if (!WireFormatLite::SkipField(&in, tag)) return std::nullopt;
      continue;
    }
    int length = 0;
    if (!in.ReadVarintSizeAsInt(&length)) return std::nullopt;
    return in.PushLimit(length);
  }
  return std::nullopt;
}

// The remaining bytes up to the limit.
std::optional<std::string> rest(io::CodedInputStream& in) {
  std::string bytes;
  if (!in.ReadString(&bytes, in.BytesUntilLimit())) return std::nullopt;
  return bytes;
}

// Returns false if the field ends too early.
bool leave(io::CodedInputStream& in, io::CodedInputStream::Limit before) {
  const bool is_whole = in.Skip(in.BytesUntilLimit());
  in.PopLimit(before);
  return is_whole;
}

// Reads an entry of the map of features: returns its value if the entry has that name.
std::optional<tensorflow::Feature> value_of(io::CodedInputStream& in, std::string_view name) {
  constexpr int kKey = 1;
  constexpr int kValue = 2;
  const auto before_key = enter(in, kKey);
  if (!before_key) return std::nullopt;
  const bool is_wanted = rest(in) == name;
  if (!leave(in, *before_key) || !is_wanted) return std::nullopt;
  const auto before_value = enter(in, kValue);
  if (!before_value) return std::nullopt;
  const std::optional<std::string> bytes = rest(in);
  tensorflow::Feature feature;
  if (!leave(in, *before_value) || !bytes || !feature.ParseFromString(*bytes)) return std::nullopt;
  return feature;
}

}  // namespace

std::optional<tensorflow::Feature> find_feature(const RecordFile& file, std::size_t record, std::string_view name) {
  constexpr int kBlock = 512;  // bytes per read from the file
  if (file.bytes(record) > std::numeric_limits<int>::max()) return std::nullopt;
  RecordStream source(file, record);
  io::CopyingInputStreamAdaptor blocks(&source, kBlock);
  io::CodedInputStream in(&blocks);
  in.PushLimit(static_cast<int>(file.bytes(record)));  // a damaged length must not reach beyond the record
  while (const auto features = enter(in, tensorflow::Example::kFeaturesFieldNumber)) {
    while (const auto entry = enter(in, tensorflow::Features::kFeatureFieldNumber)) {
      if (auto feature = value_of(in, name)) return feature;
      if (!leave(in, *entry)) return std::nullopt;
    }
    if (!leave(in, *features)) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace arbalest::dataflow
