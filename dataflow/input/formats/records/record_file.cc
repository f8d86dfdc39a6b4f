#include "dataflow/input/formats/records/record_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dataflow/input/formats/records/crc32c.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

static_assert(std::endian::native == std::endian::little);  // the file's numbers are little-endian

constexpr std::uint64_t kHeader = 12;  // length (8), its checksum (4)
constexpr std::uint64_t kTrailer = 4;  // checksum of the data

template <typename Number>
Number number_at(std::span<const std::uint8_t> bytes, std::size_t offset) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

template <typename Number>
std::array<std::uint8_t, sizeof(Number)> bytes_of(Number number) {
  std::array<std::uint8_t, sizeof(Number)> bytes{};
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

}  // namespace

RecordFile::RecordFile(std::filesystem::path path)
    : path_(std::move(path)), descriptor_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status {};
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) {
    const int error = errno;
    if (descriptor_ >= 0) close(descriptor_);
    const bool is_limit = error == EMFILE || error == ENFILE;
    fail(ErrorKind::kData, "{}: cannot be opened: {}; {}", path_.string(), std::strerror(error),
         is_limit ? "every shard stays open: raise the limit (ulimit -n), or write fewer shards"
                  : "check its permissions");
  }
  try {
    if (!S_ISREG(status.st_mode)) fail(ErrorKind::kData, "{}: is not a regular file", path_.string());
    walk(static_cast<std::uint64_t>(status.st_size));
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

RecordFile::~RecordFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

RecordFile::RecordFile(RecordFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      records_(std::move(other.records_)) {}

void RecordFile::walk(std::uint64_t file_bytes) {
  if (file_bytes == 0) fail(ErrorKind::kData, "{}: is empty; get the file again", path_.string());
  std::array<std::uint8_t, kHeader> header{};
  for (std::uint64_t offset = 0; offset < file_bytes;) {
    const std::uint64_t left = file_bytes - offset;
    const auto refuse_truncated = [&] {
      fail(ErrorKind::kData, "{}: is truncated within record {} (byte {}); get the file again", path_.string(), size(),
           offset);
    };
    if (left < kHeader || !read_at(offset, header)) refuse_truncated();
    const auto bytes = number_at<std::uint64_t>(header, 0);
    if (number_at<std::uint32_t>(header, 8) != masked_crc32c(std::span(header).first(8))) {
      fail(ErrorKind::kData,
           "{}: record {} (byte {}): the checksum of its length is wrong; the file is damaged, or no TFRecord file (a "
           "compressed one must be unpacked)",
           path_.string(), size(), offset);
    }
    if (left < kHeader + kTrailer || bytes > left - kHeader - kTrailer) refuse_truncated();
    records_.push_back({offset + kHeader, bytes});
    offset += kHeader + bytes + kTrailer;
  }
}

bool RecordFile::read_at(std::uint64_t offset, std::span<std::uint8_t> out) const {
  while (!out.empty()) {
    const ssize_t count = pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorKind::kData, "{}: reading failed: {}", path_.string(), std::strerror(errno));
    if (count == 0) return false;
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return true;
}

std::string RecordFile::describe(std::size_t record) const {
  return fmt::format("{}: record {} (byte {})", path_.string(), record, records_.at(record).offset - kHeader);
}

std::size_t RecordFile::read_part(std::size_t record, std::uint64_t offset, std::span<std::uint8_t> out) const {
  const Record& place = records_.at(record);
  const std::uint64_t count = std::min<std::uint64_t>(out.size(), place.bytes - std::min(offset, place.bytes));
  if (!read_at(place.offset + offset, out.first(count))) {
    fail(ErrorKind::kData, "{}: the file has become shorter", describe(record));
  }
  return count;
}

std::vector<std::uint8_t> RecordFile::read(std::size_t record) const {
  const Record& place = records_.at(record);
  std::vector<std::uint8_t> data(place.bytes + kTrailer);
  if (!read_at(place.offset, data)) fail(ErrorKind::kData, "{}: the file has become shorter", describe(record));
  const auto checksum = number_at<std::uint32_t>(data, place.bytes);
  data.resize(place.bytes);
  if (checksum != masked_crc32c(data)) {
    fail(ErrorKind::kData, "{}: the checksum of its data is wrong; get the file again", describe(record));
  }
  return data;
}

RecordWriter::RecordWriter(const std::filesystem::path& path) : path_(path), file_(path, std::ios::binary) {
  if (!file_) fail(ErrorKind::kOutOfMemory, "{}: cannot be written: {}", path_.string(), std::strerror(errno));
}

std::vector<std::uint8_t> record_of(std::span<const std::uint8_t> data) {
  std::vector<std::uint8_t> record;
  record.reserve(kHeader + data.size() + kTrailer);
  const auto put = [&](std::span<const std::uint8_t> bytes) {
    record.insert(record.end(), bytes.begin(), bytes.end());
  };
  const auto length = bytes_of(std::uint64_t{data.size()});
  put(length);
  put(bytes_of(masked_crc32c(length)));
  put(data);
  put(bytes_of(masked_crc32c(data)));
  return record;
}

void RecordWriter::write(std::span<const std::uint8_t> data) {
  const std::vector<std::uint8_t> record = record_of(data);
  file_.write(reinterpret_cast<const char*>(record.data()), static_cast<std::streamsize>(record.size()));
}

void RecordWriter::close() {
  file_.close();
  if (!file_) fail(ErrorKind::kOutOfMemory, "{}: writing failed: {}", path_.string(), std::strerror(errno));
}

}  // namespace arbalest::dataflow
