#include "dataflow/input/images/exif.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "dataflow/input/images/image_formats.h"

namespace arbalest::dataflow {

namespace {

using Bytes = std::span<const std::uint8_t>;

enum class ByteOrder { kLittle, kBig };

// The unsigned integer of `size` bytes at `at`; none beyond the end.
std::optional<std::uint32_t> number_at(Bytes bytes, std::size_t at, std::size_t size, ByteOrder order) {
  if (at > bytes.size() || bytes.size() - at < size) return std::nullopt;
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < size; ++i) {
    number = number << 8U | bytes[at + (order == ByteOrder::kBig ? i : size - 1 - i)];
  }
  return number;
}

bool holds(Bytes bytes, std::size_t at, std::string_view text) {
  return at <= bytes.size() && bytes.size() - at >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

constexpr std::string_view kPrefix{"Exif\0\0", 6};  // before the data, in JPEG files and some WebP files

struct FoundExif {
  std::optional<Bytes> data = {};
  std::string problem = {};  // why data that is there cannot be used
};

// Segments follow each other until the first scan. Bytes between them are passed over, as libjpeg does.
FoundExif find_in_jpeg(Bytes file) {
  constexpr std::uint8_t kStart = 0xFF;
  constexpr std::uint8_t kApp1 = 0xE1;
  constexpr std::uint8_t kEnd = 0xD9;
  constexpr std::uint8_t kScan = 0xDA;
  std::size_t at = 2;
  for (;;) {
    while (at < file.size() && file[at] != kStart) ++at;
    while (at < file.size() && file[at] == kStart) ++at;
    if (at >= file.size() || file[at] == kScan || file[at] == kEnd) return {};
    const std::uint8_t marker = file[at++];
    const bool is_alone = marker <= 0x01 || (marker >= 0xD0 && marker <= 0xD8);  // without a length
    if (is_alone) continue;
    const std::optional<std::uint32_t> length = number_at(file, at, 2, ByteOrder::kBig);
    if (!length || *length < 2 || *length > file.size() - at) return {};  // the decoder refuses the file
    const Bytes segment = file.subspan(at + 2, *length - 2);
    if (marker == kApp1 && holds(segment, 0, kPrefix)) return {segment.subspan(kPrefix.size())};
    at += *length;
  }
}

FoundExif find_in_png(Bytes file) {
  constexpr std::size_t kSignature = 8;
  constexpr std::size_t kFrame = 12;  // length, type and checksum of a chunk
  for (std::size_t at = kSignature; file.size() >= kFrame && at <= file.size() - kFrame;) {
    const std::uint32_t length = *number_at(file, at, 4, ByteOrder::kBig);
    if (length > file.size() - at - kFrame || holds(file, at + 4, "IEND")) return {};
    if (holds(file, at + 4, "eXIf")) {
      const Bytes typed = file.subspan(at + 4, 4 + std::size_t{length});
      const auto sum = static_cast<std::uint32_t>(crc32(0, typed.data(), static_cast<uInt>(typed.size())));
      if (sum != *number_at(file, at + 8 + length, 4, ByteOrder::kBig)) return {{}, "its checksum is wrong"};
      return {typed.subspan(4)};
    }
    at += kFrame + length;
  }
  return {};
}

FoundExif find_in_webp(Bytes file) {
  constexpr std::size_t kWebpHeader = 12;  // "RIFF", length, "WEBP"
  constexpr std::size_t kFrame = 8;        // type and length of a chunk
  for (std::size_t at = kWebpHeader; file.size() >= kFrame && at <= file.size() - kFrame;) {
    const std::uint32_t length = *number_at(file, at + 4, 4, ByteOrder::kLittle);
    if (length > file.size() - at - kFrame) return {};
    if (holds(file, at, "EXIF")) {
      const Bytes data = file.subspan(at + kFrame, length);
      return {holds(data, 0, kPrefix) ? data.subspan(kPrefix.size()) : data};
    }
    at += kFrame + std::size_t{length} + length % 2;
  }
  return {};
}

FoundExif find_exif(Bytes file) {
  switch (format_of(file)) {
    case ImageFormat::kJpeg: return find_in_jpeg(file);
    case ImageFormat::kPng: return find_in_png(file);
    case ImageFormat::kWebp: return find_in_webp(file);
    case ImageFormat::kUnknown: break;
  }
  return {};
}

// The value of the entry at `at`, whose tag is that of the orientation.
ExifOrientation entry_value(Bytes exif, std::size_t at, ByteOrder order) {
  constexpr std::uint32_t kByte = 1;
  constexpr std::uint32_t kShort = 3;
  constexpr std::uint32_t kLong = 4;
  const std::uint32_t type = *number_at(exif, at + 2, 2, order);
  const std::uint32_t count = *number_at(exif, at + 4, 4, order);
  const std::size_t size = type == kByte ? 1 : type == kShort ? 2 : type == kLong ? 4 : 0;
  if (size == 0 || count != 1) return {1, "it must be one integer"};
  const std::uint32_t value = *number_at(exif, at + 8, size, order);
  if (value < 1 || value > 8) return {1, fmt::format("it is {}, which is not in [1, 8]", value)};
  return {static_cast<int>(value)};
}

}  // namespace

ExifOrientation parse_exif(std::span<const std::uint8_t> exif) {
  constexpr std::uint32_t kTag = 0x0112;
  constexpr std::size_t kEntry = 12;  // tag (2), type (2), count (4), value (4)
  const bool is_big = holds(exif, 0, "MM");
  const ByteOrder order = is_big ? ByteOrder::kBig : ByteOrder::kLittle;
  const std::optional<std::uint32_t> first = number_at(exif, 4, 4, order);
  if (!first || (!is_big && !holds(exif, 0, "II")) || number_at(exif, 2, 2, order) != 42U) {
    return {1, "the EXIF data has no valid header"};
  }
  const std::optional<std::uint32_t> entries = number_at(exif, *first, 2, order);
  if (!entries) return {1, "the EXIF data ends early"};
  for (std::size_t entry = 0; entry < *entries; ++entry) {
    const std::size_t at = std::size_t{*first} + 2 + entry * kEntry;
    if (at > exif.size() || exif.size() - at < kEntry) return {1, "the EXIF data ends early"};
    if (number_at(exif, at, 2, order) == kTag) return entry_value(exif, at, order);
  }
  return {};
}

ExifOrientation read_orientation(std::span<const std::uint8_t> file) {
  const FoundExif found = find_exif(file);
  if (!found.problem.empty()) return {1, found.problem};
  return found.data ? parse_exif(*found.data) : ExifOrientation{};
}

}  // namespace arbalest::dataflow
