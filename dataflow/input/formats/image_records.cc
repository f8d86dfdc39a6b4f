#include "dataflow/input/formats/image_records.h"

#include <fnmatch.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <ranges>
#include <system_error>
#include <utility>

#include "dataflow/input/formats/records/example_feature.h"
#include "dataflow/input/formats/records/record_file.h"
#include "dataflow/input/formats/records/shard_names.h"
#include "engine/base/error.h"
#include "tensorflow/example.pb.h"

namespace arbalest::dataflow {

namespace fs = std::filesystem;
using engine::ErrorKind;
using engine::fail;

namespace {

constexpr const char* kFile = "image/encoded";
constexpr const char* kLabel = "image/class/label";
constexpr const char* kClassName = "image/class/text";

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0;
}

void check_other_patterns(const ImageRecordsSource& source, const std::vector<fs::path>& shards) {
  for (const std::string& pattern : source.other_patterns) {
    for (const fs::path& shard : shards) {
      if (!matches(pattern, shard.filename().string())) continue;
      fail(ErrorKind::kData,
           "{}: this shard matches both '{}' and '{}', but two sets must not share a shard; change a pattern, or "
           "rename the file",
           shard.string(), source.pattern, pattern);
    }
  }
}

std::vector<fs::path> find_shards(const ImageRecordsSource& source) {
  std::error_code error;
  std::vector<fs::path> shards;
  fs::directory_iterator entry(source.directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (matches(source.pattern, name)) shards.push_back(entry->path());
  }
  if (error || shards.empty()) {
    fail(ErrorKind::kData,
         "{}: dataset is missing: {}; name the folder that holds '{}' with --data-root or $ARBALEST_DATA",
         (source.directory / source.pattern).string(), error ? error.message() : "no file has such a name",
         source.directory.filename().string());
  }
  std::ranges::sort(shards);
  check_complete(shards);
  check_other_patterns(source, shards);
  return shards;
}

// Returns the last feature of that name, as if a map were filled entry by entry.
const tensorflow::Feature& feature_of(const tensorflow::Example& example, const char* name) {
  const auto entries = example.features().feature() | std::views::reverse;
  const auto found = std::ranges::find(entries, name, &tensorflow::Features::Entry::key);
  if (found == entries.end()) fail(ErrorKind::kData, "has no feature '{}'", name);
  return found->value();
}

tensorflow::Feature& add_feature(tensorflow::Example& example, const char* name) {
  tensorflow::Features::Entry& entry = *example.mutable_features()->add_feature();
  entry.set_key(name);
  return *entry.mutable_value();
}

constexpr std::int32_t kUnreadable = -1;  // marks an unreadable label

// A shard, and the class of each of its records.
struct Shard {
  RecordFile file;
  std::vector<std::int32_t> labels;
};

ImageRecord read_record(const RecordFile& file, std::size_t record) {
  const std::vector<std::uint8_t> data = file.read(record);
  try {
    return read_image_record(data);
  } catch (const engine::Error& error) {
    fail(ErrorKind::kData, "{}: {}", file.describe(record), error.what());
  }
}

std::optional<std::int64_t> find_label(const RecordFile& file, std::size_t record) {
  const std::optional<tensorflow::Feature> feature = find_feature(file, record, kLabel);
  if (!feature || feature->int64_list().value_size() != 1) return std::nullopt;
  return feature->int64_list().value(0);
}

// Reads the whole record only if its label indicates an error.
std::int32_t read_label(const RecordFile& file, std::size_t record, const ImageRecordsSource& source) {
  const auto is_class = [&](std::int64_t label) {
    return label >= source.first_label && label - source.first_label < source.classes;
  };
  std::int64_t label = 0;
  try {
    const std::optional<std::int64_t> found = find_label(file, record);
    if (found && is_class(*found)) return static_cast<std::int32_t>(*found - source.first_label);
    label = read_record(file, record).label;
  } catch (const engine::Error& error) {
    if (error.kind() != ErrorKind::kData || source.on_unreadable == OnUnreadable::kStop) throw;
    return kUnreadable;
  }
  if (!is_class(label)) {
    fail(ErrorKind::kData, "{}: label {} is not in [{}, {}), as the job's 'first_label' and 'classes' say",
         file.describe(record), label, source.first_label, source.first_label + source.classes);
  }
  return static_cast<std::int32_t>(label - source.first_label);
}

Shard open_shard(const fs::path& path, const ImageRecordsSource& source) {
  Shard shard{RecordFile(path), {}};
  for (std::size_t record = 0; record < shard.file.size(); ++record) {
    shard.labels.push_back(read_label(shard.file, record, source));
  }
  return shard;
}

// Returns shards in the order of `paths`; throws the error of the first one that fails.
std::vector<Shard> open_shards(const std::vector<fs::path>& paths, const ImageRecordsSource& source,
                               engine::host::Pool& pool) {
  std::vector<std::optional<Shard>> opened(paths.size());
  std::vector<std::exception_ptr> failures(paths.size());
  pool.for_each(paths.size(), [&](std::size_t i) {
    try {
      opened[i].emplace(open_shard(paths[i], source));
    } catch (...) {
      failures[i] = std::current_exception();
    }
  });
  std::vector<Shard> shards;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (failures[i]) std::rethrow_exception(failures[i]);
    shards.push_back(std::move(*opened[i]));
  }
  return shards;
}

class ImageRecords final : public EncodedExamples {
 public:
  ImageRecords(const ImageRecordsSource& source, engine::host::Pool& pool)
      : shards_(open_shards(find_shards(source), source, pool)) {
    for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) {
      for (std::uint32_t record = 0; record < shards_[shard].labels.size(); ++record) {
        places_.push_back({shard, record});
      }
    }
  }

  std::int64_t size() const noexcept override { return std::ssize(places_); }
  std::int32_t label(std::int64_t example) const override {
    const Place& at = place(example);
    return shards_[at.shard].labels[at.record];
  }
  std::string record(std::int64_t example) const override {
    const Place& at = place(example);
    return shards_[at.shard].file.describe(at.record);
  }
  std::vector<std::uint8_t> read(std::int64_t example) const override {
    const Place& at = place(example);
    return read_record(shards_[at.shard].file, at.record).file;
  }

 private:
  struct Place {
    std::uint32_t shard = 0;
    std::uint32_t record = 0;
  };

  const Place& place(std::int64_t example) const { return places_.at(static_cast<std::size_t>(example)); }

  std::vector<Shard> shards_;
  std::vector<Place> places_;
};

}  // namespace

std::unique_ptr<const EncodedExamples> open_image_records(const ImageRecordsSource& source, engine::host::Pool& pool) {
  return std::make_unique<ImageRecords>(source, pool);
}

ImageRecord read_image_record(std::span<const std::uint8_t> data) {
  tensorflow::Example example;
  const bool is_example = data.size() <= std::numeric_limits<int>::max() &&
                          example.ParseFromArray(data.data(), static_cast<int>(data.size()));
  if (!is_example) fail(ErrorKind::kData, "is no tf.train.Example");
  const tensorflow::Feature& label = feature_of(example, kLabel);
  const tensorflow::Feature& file = feature_of(example, kFile);
  if (label.int64_list().value_size() != 1) fail(ErrorKind::kData, "'{}' is not one integer", kLabel);
  if (file.bytes_list().value_size() != 1) fail(ErrorKind::kData, "'{}' is not one image file", kFile);
  const std::string& bytes = file.bytes_list().value(0);
  return {label.int64_list().value(0), {bytes.begin(), bytes.end()}};
}

std::vector<std::uint8_t> make_image_record(const ImageRecord& record, const std::string& class_name) {
  tensorflow::Example example;
  add_feature(example, kLabel).mutable_int64_list()->add_value(record.label);
  add_feature(example, kClassName).mutable_bytes_list()->add_value(class_name);
  add_feature(example, kFile).mutable_bytes_list()->add_value(record.file.data(), record.file.size());
  const std::size_t bytes = example.ByteSizeLong();
  if (bytes > std::numeric_limits<int>::max()) {
    fail(ErrorKind::kData, "an image of {} bytes is too large for a record", record.file.size());
  }
  std::vector<std::uint8_t> data(bytes);
  example.SerializeToArray(data.data(), static_cast<int>(bytes));
  return data;
}

}  // namespace arbalest::dataflow
