#include "dataflow/input/formats/idx.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/ranges.h>
#include "dataflow/input/formats/input_file.h"

#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;

struct IdxArray {
  std::filesystem::path path;
  std::uint64_t header_bytes = 0;
  std::vector<std::uint32_t> extents;
  std::vector<std::uint8_t> bytes;
};

// Throws if the file is there, but its name is spelled with a dot, as in many archives.
void refuse_dotted_name(const IdxSource& source, const std::string& name) {
  std::string dotted = name;
  const std::size_t dash = dotted.find("-idx");
  if (dash == std::string::npos) return;
  dotted[dash] = '.';
  for (const char* ending : {"", ".gz"}) {
    std::error_code error;
    const std::filesystem::path path = source.directory / (dotted + ending);
    if (!std::filesystem::exists(path, error)) continue;
    fail(ErrorKind::kData, "{}: dataset is missing: found '{}', but its name has to be '{}'; rename the files",
         source.name, path.string(), name + ending);
  }
}

std::filesystem::path find_file(const IdxSource& source, const std::string& name) {
  const std::filesystem::path raw = source.directory / name;
  const std::filesystem::path compressed = source.directory / (name + ".gz");
  for (const std::filesystem::path& path : {raw, compressed}) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::symlink_status(path, error);
    if (status.type() != std::filesystem::file_type::not_found) return path;
  }
  refuse_dotted_name(source, name);
  fail(ErrorKind::kData,
       "{}: dataset is missing: found neither {} nor {}; get it with `arbalest data fetch {}`, put its files there, "
       "or name the folder that holds '{}' with --data-root or $ARBALEST_DATA",
       source.name, raw.string(), compressed.string(), source.name, source.directory.filename().string());
}

// The magic number: two zeros, the element type, the number of dimensions.
void read_magic(InputFile& file, std::size_t rank) {
  std::array<std::uint8_t, 4> magic{};
  file.read(magic, "magic number");
  const std::string path = file.path().string();
  if (magic[0] != 0 || magic[1] != 0) {
    fail(ErrorKind::kData,
         "{}: is not an IDX file: it starts with {:02x} {:02x} {:02x} {:02x} instead of 00 00 08 {:02x}", path,
         magic[0], magic[1], magic[2], magic[3], rank);
  }
  if (magic[2] != kUnsignedByte) {
    fail(ErrorKind::kData, "{}: byte 2: elements are of type 0x{:02x}; only unsigned bytes (0x08) are supported", path,
         magic[2]);
  }
  if (magic[3] != rank) {
    fail(ErrorKind::kData, "{}: byte 3: the array has {} dimensions instead of {}; are image and label files swapped?",
         path, magic[3], rank);
  }
}

std::vector<std::uint32_t> read_extents(InputFile& file, std::size_t rank) {
  std::vector<std::uint32_t> extents;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    std::array<std::uint8_t, 4> bytes{};
    file.read(bytes, "dimensions");
    extents.push_back(std::uint32_t{bytes[0]} << 24U | std::uint32_t{bytes[1]} << 16U | std::uint32_t{bytes[2]} << 8U |
                      std::uint32_t{bytes[3]});
  }
  return extents;
}

// The product of the extents. Throws if the file cannot hold that much, before anything of that size is allocated.
std::size_t checked_size(const InputFile& file, const std::vector<std::uint32_t>& extents) {
  std::uint64_t size = 1;
  for (const std::uint32_t extent : extents) {
    if (extent == 0) {
      fail(ErrorKind::kData, "{}: a dimension in its header is 0: the file holds no data", file.path().string());
    }
    if (size > file.most_left() / extent) {
      fail(ErrorKind::kData,
           "{}: is truncated or corrupt: its header promises {} bytes, more than the file can hold; get the file again",
           file.path().string(), fmt::join(extents, " x "));
    }
    size *= extent;
  }
  return size;
}

IdxArray read_array(const IdxSource& source, const std::string& name, const std::vector<std::uint32_t>& expected) {
  InputFile file(find_file(source, name));
  IdxArray array;
  array.path = file.path();
  read_magic(file, expected.size() + 1);
  array.extents = read_extents(file, expected.size() + 1);
  array.header_bytes = file.offset();
  if (!std::equal(expected.begin(), expected.end(), array.extents.begin() + 1)) {
    fail(ErrorKind::kData, "{}: holds images of {} pixels; {} has {}", file.path().string(),
         fmt::join(array.extents.begin() + 1, array.extents.end(), " x "), source.name, fmt::join(expected, " x "));
  }
  const std::size_t bytes = checked_size(file, array.extents);
  source.budget.require(bytes, file.path().string(), "use more memory, or a part of the data");
  array.bytes.resize(bytes);
  file.read(array.bytes, "data that its header promises");
  file.expect_end();
  return array;
}

void check_labels(const IdxArray& labels, std::int64_t classes) {
  for (std::size_t record = 0; record < labels.bytes.size(); ++record) {
    if (labels.bytes[record] >= classes) {
      fail(ErrorKind::kData, "{}: record {} (byte {}): label {} is not in [0, {}); get the file again",
           labels.path.string(), record, labels.header_bytes + record, labels.bytes[record], classes);
    }
  }
}

struct FileNames {
  std::string images;
  std::string labels;
};

FileNames names_of(const IdxSource& source, Split split) {
  if (split == Split::kValidation) return {source.validation_images, source.validation_labels};
  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  return {prefix + "-images-idx3-ubyte", prefix + "-labels-idx1-ubyte"};
}

}  // namespace

std::unique_ptr<ByteImages> load_idx(const IdxSource& source, Split split) {
  const engine::Shape& image = source.expected.image();
  ARBALEST_CHECK(image.rank() == 3 && image[0] == 1);
  ARBALEST_CHECK(source.expected.classes() > 0 && source.expected.classes() <= 256);
  const FileNames names = names_of(source, split);
  IdxArray images =
      read_array(source, names.images, {static_cast<std::uint32_t>(image[1]), static_cast<std::uint32_t>(image[2])});
  IdxArray labels = read_array(source, names.labels, {});
  if (images.extents[0] != labels.extents[0]) {
    fail(ErrorKind::kData, "{} holds {} images but {} holds {} labels; the files do not belong together",
         images.path.string(), images.extents[0], labels.path.string(), labels.extents[0]);
  }
  check_labels(labels, source.expected.classes());
  return std::make_unique<ByteImages>(fmt::format("{} {}", source.name, name_of(split)), source.expected,
                                      source.normalization, std::move(images.bytes),
                                      std::vector<std::int32_t>(labels.bytes.begin(), labels.bytes.end()));
}

}  // namespace arbalest::dataflow
