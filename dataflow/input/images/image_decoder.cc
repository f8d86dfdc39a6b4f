#include "dataflow/input/images/image_decoder.h"

#include <algorithm>
#include <array>

#include "dataflow/input/images/image_formats.h"
#include "engine/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

enum class Format { kJpeg, kPng };

Format format_of(std::span<const std::uint8_t> file) {
  constexpr std::array<std::uint8_t, 3> kJpegStart = {0xFF, 0xD8, 0xFF};
  constexpr std::array<std::uint8_t, 8> kPngStart = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  const auto starts_with = [&](const auto& start) {
    return file.size() >= start.size() && std::equal(start.begin(), start.end(), file.begin());
  };
  if (file.empty()) fail(ErrorKind::kData, "is empty; get it again");
  if (starts_with(kJpegStart)) return Format::kJpeg;
  if (starts_with(kPngStart)) return Format::kPng;
  fail(ErrorKind::kData, "is neither a JPEG nor a PNG image, whatever its name says; convert it to one");
}

}  // namespace

void check_sides(std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1) fail(ErrorKind::kData, "has {} x {} pixels; get it again", width, height);
  if (width * height > kMostImagePixels) {
    fail(ErrorKind::kData, "says that it has {} x {} pixels; more than {} are refused, so make it smaller", width,
         height, kMostImagePixels);
  }
}

ImageSides image_sides(std::span<const std::uint8_t> file) {
  return format_of(file) == Format::kJpeg ? jpeg_sides(file) : png_sides(file);
}

DecodedImage decode_image(std::span<const std::uint8_t> file, int channels, const ChooseLeastScale& choose) {
  ARBALEST_CHECK(channels == 1 || channels == 3);
  return format_of(file) == Format::kJpeg ? decode_jpeg(file, channels, choose) : decode_png(file, channels, choose);
}

}  // namespace arbalest::dataflow
