#include "dataflow/input/formats/cifar.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "dataflow/input/formats/growing_vector.h"
#include "dataflow/input/formats/input_file.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

constexpr std::int64_t kSide = 32;
constexpr std::size_t kPixels = std::size_t{3} * kSide * kSide;
constexpr std::size_t kRecordsAtOnce = 1000;

std::string name_of(CifarVersion version) { return version == CifarVersion::k10 ? "cifar10" : "cifar100"; }

std::string plain(const std::string& name) { return std::filesystem::path(name).lexically_normal().string(); }

std::vector<std::string> training_files(CifarVersion version) {
  if (version == CifarVersion::k100) return {"train.bin"};
  return {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
}

std::vector<std::string> file_names(const CifarSource& source, Split split) {
  if (split == Split::kValidation) return {source.validation};
  if (split == Split::kTest) return {source.version == CifarVersion::k100 ? "test.bin" : "test_batch.bin"};
  std::vector<std::string> names = training_files(source.version);
  std::erase(names, plain(source.validation));
  return names;
}

// Number of records in each published file; none for a file that was not published.
std::optional<std::size_t> published_records(const CifarSource& source, Split split) {
  if (split == Split::kValidation && !is_training_file(source.version, source.validation)) return std::nullopt;
  constexpr std::size_t kAllOfCifar100 = 50'000;
  return source.version == CifarVersion::k100 && split == Split::kTrain ? kAllOfCifar100
                                                                        : std::size_t{kCifar10FileExamples};
}

class CifarReader {
 public:
  CifarReader(const CifarSource& source, Split split)
      : label_bytes_(source.version == CifarVersion::k10 ? 1 : 2),
        classes_(cifar_description(source.version).classes()),
        records_(kRecordsAtOnce * record_bytes()),
        limit_{source.budget, fmt::format("{} {}", source.directory.string(), name_of(split)),
               "use more memory, or a part of the data"} {}

  // Makes room for the images of these files. Files that are compressed hold more.
  void expect(const std::vector<std::filesystem::path>& paths) {
    std::size_t bytes = 0;
    for (const std::filesystem::path& path : paths) {
      std::error_code unknown;  // read() says why a file cannot be read
      const auto size = std::filesystem::file_size(path, unknown);
      if (!unknown) bytes += size;
    }
    make_room(pixels_, bytes / record_bytes() * kPixels, limit_);
    labels_.reserve(bytes / record_bytes());
  }

  // Returns the number of records.
  std::size_t read(const std::filesystem::path& path) {
    InputFile file(path);
    std::size_t number = 0;  // number of the next record
    for (;;) {
      const std::size_t count = file.read_up_to(records_);
      for (std::size_t at = 0; at + record_bytes() <= count; at += record_bytes()) {
        add(std::span(records_).subspan(at, record_bytes()), path, number++);
      }
      const std::size_t left = count % record_bytes();
      if (left != 0) {
        fail(
            ErrorKind::kData,
            "{}: its last {} bytes are no whole record of {} bytes: it is truncated within record {} (byte {}), or has "
            "bytes behind its last record; get the file again",
            path.string(), left, record_bytes(), number, number * record_bytes());
      }
      if (count < records_.size()) break;
    }
    if (number == 0) fail(ErrorKind::kData, "{}: is empty; get the file again", path.string());
    return number;
  }

  std::vector<std::uint8_t> take_pixels() { return std::move(pixels_); }
  std::vector<std::int32_t> take_labels() { return std::move(labels_); }

 private:
  std::size_t record_bytes() const { return label_bytes_ + kPixels; }

  void add(std::span<const std::uint8_t> record, const std::filesystem::path& path, std::size_t number) {
    const std::uint8_t label = record[label_bytes_ - 1];
    if (label >= classes_) {
      fail(ErrorKind::kData, "{}: record {} (byte {}): label {} is not in [0, {}); get the file again", path.string(),
           number, number * record_bytes() + label_bytes_ - 1, label, classes_);
    }
    labels_.push_back(label);
    const std::span<const std::uint8_t> pixels = record.subspan(label_bytes_);
    make_room(pixels_, pixels.size(), limit_);
    pixels_.insert(pixels_.end(), pixels.begin(), pixels.end());
  }

  std::size_t label_bytes_;
  std::int64_t classes_;
  std::vector<std::uint8_t> records_;
  GrowthLimit limit_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::int32_t> labels_;
};

}  // namespace

InputDescription cifar_description(CifarVersion version) {
  return image_input({3, kSide, kSide}, version == CifarVersion::k10 ? 10 : 100);
}

bool is_training_file(CifarVersion version, const std::string& name) {
  const std::vector<std::string> files = training_files(version);
  return std::ranges::find(files, plain(name)) != files.end();
}

std::unique_ptr<ByteImages> load_cifar(const CifarSource& source, Split split, std::vector<std::string>& warnings) {
  const std::string name = name_of(source.version);
  CifarReader reader(source, split);
  const std::optional<std::size_t> expected = published_records(source, split);
  std::vector<std::string> others;
  std::vector<std::filesystem::path> paths;
  for (const std::string& file : file_names(source, split)) paths.push_back(source.directory / file);
  reader.expect(paths);
  for (const std::string& file : file_names(source, split)) {
    const std::filesystem::path path = source.directory / file;
    std::error_code error;
    if (std::filesystem::symlink_status(path, error).type() == std::filesystem::file_type::not_found) {
      fail(ErrorKind::kData,
           "{}: dataset is missing: {} is not there; get it with `arbalest data fetch {}`, put the files of the "
           "binary version there (its archive unpacks into {}), or name the folder that holds '{}' with --data-root "
           "or $ARBALEST_DATA",
           name, path.string(), name, source.version == CifarVersion::k10 ? "cifar-10-batches-bin" : "cifar-100-binary",
           source.directory.filename().string());
    }
    const std::size_t records = reader.read(path);
    if (expected && records != *expected) {
      others.push_back(fmt::format("{} has {} records instead of {}", file, records, *expected));
    }
  }
  if (!others.empty()) {
    warnings.push_back(fmt::format("{}: {}; get them again unless these numbers are intended",
                                   source.directory.string(), fmt::join(others, ", ")));
  }
  return std::make_unique<ByteImages>(fmt::format("{} {}", name, name_of(split)), cifar_description(source.version),
                                      source.normalization, reader.take_pixels(), reader.take_labels());
}

}  // namespace arbalest::dataflow
