// Adds to JPEG, PNG and WebP files what cameras and programs write beside the pixels.
#pragma once

#include <webp/encode.h>
#include <zlib.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "tests/support/image_writer.h"

namespace arbalest::tests {

inline std::span<const std::uint8_t> bytes_of(const std::string& file) {
  return {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
}

// An unsigned integer of `size` bytes.
inline std::string number(std::uint32_t value, unsigned size, bool is_big = true) {
  std::string bytes;
  for (unsigned i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8U * (is_big ? size - 1 - i : i)));
  return bytes;
}

// EXIF data with two tags, of which the second is the orientation.
inline std::string exif(std::uint32_t orientation, bool is_big, std::uint32_t type = 3, std::uint32_t count = 1) {
  const auto put = [&](std::uint32_t value, unsigned size) { return number(value, size, is_big); };
  const std::string value = type == 3 ? put(orientation, 2) + put(0, 2) : put(orientation, 4);
  return (is_big ? "MM" : "II") + put(42, 2) + put(8, 4) + put(2, 2) +       // one directory of two entries
         put(0x0100, 2) + put(4, 2) + put(1, 4) + put(640, 4) +              // a width
         put(0x0112, 2) + put(type, 2) + put(count, 4) + value + put(0, 4);  // no further directory
}

// Puts a segment behind the first marker.
inline std::string jpeg_with_exif(const std::string& file, const std::string& data) {
  const std::string content = std::string("Exif\0\0", 6) + data;
  return file.substr(0, 2) + "\xFF\xE1" + number(static_cast<std::uint32_t>(content.size() + 2), 2) + content +
         file.substr(2);
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string typed = type + data;
  const auto sum = static_cast<std::uint32_t>(crc32(0, bytes_of(typed).data(), static_cast<uInt>(typed.size())));
  return number(static_cast<std::uint32_t>(data.size()), 4) + typed + number(sum, 4);
}

// Puts a chunk behind the header.
inline std::string png_with(const std::string& file, const std::string& type, const std::string& data) {
  constexpr std::size_t kHeaderEnd = 33;
  return file.substr(0, kHeaderEnd) + png_chunk(type, data) + file.substr(kHeaderEnd);
}

// Stores 3 or 4 channels. `quality`: 0 to 100, or below 0 for a file without loss.
inline std::string webp(const RawImage& image, float quality = -1.0F) {
  std::uint8_t* bytes = nullptr;
  const int row = image.width * image.channels;
  const std::uint8_t* samples = image.samples.data();
  const auto encode_exactly = image.channels == 4 ? WebPEncodeLosslessRGBA : WebPEncodeLosslessRGB;
  const auto encode = image.channels == 4 ? WebPEncodeRGBA : WebPEncodeRGB;
  const std::size_t size = quality < 0.0F ? encode_exactly(samples, image.width, image.height, row, &bytes)
                                          : encode(samples, image.width, image.height, row, quality, &bytes);
  if (size == 0) throw std::runtime_error("the image cannot be encoded");
  std::string file(reinterpret_cast<char*>(bytes), size);
  WebPFree(bytes);
  return file;
}

inline std::string webp_chunk(const std::string& type, const std::string& data) {
  return type + number(static_cast<std::uint32_t>(data.size()), 4, false) + data + std::string(data.size() % 2, '\0');
}

// An extended file of these chunks. `flags`: 8 EXIF, 2 animation.
inline std::string webp_of(const RawImage& image, std::uint32_t flags, const std::string& chunks) {
  const std::string head = number(flags, 4, false) + number(static_cast<std::uint32_t>(image.width - 1), 3, false) +
                           number(static_cast<std::uint32_t>(image.height - 1), 3, false);
  const std::string content = "WEBP" + webp_chunk("VP8X", head) + chunks;
  return "RIFF" + number(static_cast<std::uint32_t>(content.size()), 4, false) + content;
}

inline std::string webp_with_exif(const RawImage& image, const std::string& data) {
  constexpr std::uint32_t kExifFlag = 8;
  return webp_of(image, kExifFlag, webp(image).substr(12) + webp_chunk("EXIF", data));
}

}  // namespace arbalest::tests
