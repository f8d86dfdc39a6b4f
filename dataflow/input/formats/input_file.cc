#include "dataflow/input/formats/input_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

constexpr std::uint64_t kMostExpansion = 1032;  // largest expansion by deflate, per byte (zlib's technical notes)
constexpr int kGzipWindow = 15 + 16;            // largest window; 16 asks for gzip headers and checksums
constexpr std::array<std::uint8_t, 2> kGzipMagic = {0x1F, 0x8B};

}  // namespace

struct InputFile::Inflater {
  Inflater() {
    if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
  bool ended = false;  // a gzip member ended with the right checksum; only another member may follow
  std::array<std::uint8_t, 1 << 16> compressed;
};

InputFile::InputFile(std::filesystem::path path, bool is_raw) : path_(std::move(path)) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path_, error);
  if (!std::filesystem::exists(status)) {
    fail(ErrorKind::kData, "{}: cannot be opened: {}; check the path", path_.string(), error.message());
  }
  if (!std::filesystem::is_regular_file(status)) {
    fail(ErrorKind::kData, "{}: is a {}, not a file", path_.string(),
         std::filesystem::is_directory(status) ? "directory" : "special file");
  }
  file_.reset(std::fopen(path_.c_str(), "rb"));
  if (!file_) {
    fail(ErrorKind::kData, "{}: cannot be opened: {}; check its permissions", path_.string(), std::strerror(errno));
  }
  file_bytes_ = std::filesystem::file_size(path_, error);
  if (error) fail(ErrorKind::kData, "{}: its size cannot be read: {}", path_.string(), error.message());
  if (is_raw) return;
  std::array<std::uint8_t, 2> start{};
  if (read_file(start) == start.size() && start == kGzipMagic) inflater_ = std::make_unique<Inflater>();
  std::rewind(file_.get());
}

InputFile::~InputFile() = default;

std::uint64_t InputFile::most_left() const noexcept {
  if (!inflater_) return file_bytes_ - std::min(file_bytes_, offset_);
  if (file_bytes_ > std::numeric_limits<std::uint64_t>::max() / kMostExpansion) return file_bytes_;
  return file_bytes_ * kMostExpansion;
}

std::size_t InputFile::read_file(std::span<std::uint8_t> out) {
  const std::size_t count = std::fread(out.data(), 1, out.size(), file_.get());
  if (count < out.size() && std::ferror(file_.get()) != 0) {
    fail(ErrorKind::kData, "{}: reading failed: {}", path_.string(), std::strerror(errno));
  }
  return count;
}

// Reads at least one byte unless the content has ended.
std::size_t InputFile::read_some(std::span<std::uint8_t> out) {
  if (!inflater_) return read_file(out);
  z_stream& stream = inflater_->stream;
  const auto room = static_cast<uInt>(std::min<std::size_t>(out.size(), std::numeric_limits<uInt>::max()));
  stream.next_out = out.data();
  stream.avail_out = room;
  while (stream.avail_out == room) {
    if (stream.avail_in == 0) {
      stream.next_in = inflater_->compressed.data();
      stream.avail_in = static_cast<uInt>(read_file(inflater_->compressed));
      if (stream.avail_in == 0) {
        if (inflater_->ended) return 0;
        fail(ErrorKind::kData,
             "{}: the gzip data is truncated: it ends inside the content, at byte {}; get the file again",
             path_.string(), offset_);
      }
    }
    if (inflater_->ended) {
      if (inflateReset(&stream) != Z_OK) throw std::bad_alloc();
      inflater_->ended = false;
    }
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result == Z_STREAM_END) {
      inflater_->ended = true;
    } else if (result != Z_OK) {
      fail(ErrorKind::kData, "{}: the gzip data is corrupt near byte {} of the content ({}); get the file again",
           path_.string(), offset_ + room - stream.avail_out, stream.msg != nullptr ? stream.msg : "no details");
    }
  }
  return room - stream.avail_out;
}

std::size_t InputFile::read_up_to(std::span<std::uint8_t> out) {
  std::size_t total = 0;
  while (total < out.size()) {
    const std::size_t count = read_some(out.subspan(total));
    if (count == 0) break;
    offset_ += count;
    total += count;
  }
  return total;
}

void InputFile::read(std::span<std::uint8_t> out, const char* what) {
  const std::size_t count = read_up_to(out);
  if (count < out.size()) {
    fail(ErrorKind::kData,
         "{}: is truncated: it ends at byte {}, {} bytes before the end of the {}; get the file again", path_.string(),
         offset_, out.size() - count, what);
  }
}

void InputFile::expect_end() {
  std::array<std::uint8_t, 1> extra{};
  if (read_some(extra) != 0) {
    fail(ErrorKind::kData, "{}: goes on after byte {}, where its header says that it ends; get the file again",
         path_.string(), offset_);
  }
}

}  // namespace arbalest::dataflow
