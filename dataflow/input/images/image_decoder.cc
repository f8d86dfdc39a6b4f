#include "dataflow/input/images/image_decoder.h"

#include <algorithm>
#include <string_view>

#include "dataflow/input/images/exif.h"
#include "dataflow/input/images/image_formats.h"
#include "dataflow/input/images/luma.h"
#include "dataflow/input/images/orient.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

ImageFormat known_format(std::span<const std::uint8_t> file) {
  if (file.empty()) fail(ErrorKind::kData, "is empty; get it again");
  const ImageFormat format = format_of(file);
  if (format == ImageFormat::kUnknown) {
    fail(ErrorKind::kData, "is neither a JPEG, a PNG nor a WebP image, whatever its name says; convert it to one");
  }
  return format;
}

ImageSides stored_sides(std::span<const std::uint8_t> file) {
  switch (known_format(file)) {
    case ImageFormat::kJpeg: return jpeg_sides(file);
    case ImageFormat::kPng: return png_sides(file);
    default: return webp_sides(file);
  }
}

DecodedImage decode_stored(std::span<const std::uint8_t> file, int channels, const PixelRules& rules,
                           const ChoosePart& choose) {
  switch (known_format(file)) {
    case ImageFormat::kJpeg: return decode_jpeg(file, channels, rules, choose);
    case ImageFormat::kPng: return decode_png(file, channels, rules, choose);
    default: return decode_webp(file, choose);
  }
}

// Turns colors into gray, or gray into colors.
void convert_channels(DecodedImage& image, int channels) {
  if (image.channels == channels) return;
  const std::size_t count = image.pixels.size() / static_cast<std::size_t>(image.channels);
  std::vector<std::uint8_t> pixels(count * static_cast<std::size_t>(channels));
  const std::uint8_t* from = image.pixels.data();
  std::uint8_t* to = pixels.data();
  if (channels == 1) {
    for (std::size_t i = 0; i < count; ++i, from += 3) *to++ = luma(from[0], from[1], from[2]);
  } else {
    for (std::size_t i = 0; i < count; ++i, to += 3) std::fill_n(to, 3, *from++);
  }
  image.pixels = std::move(pixels);
  image.channels = channels;
}

}  // namespace

ImageFormat format_of(std::span<const std::uint8_t> file) noexcept {
  using std::string_view_literals::operator""sv;
  const auto holds = [&](std::size_t at, std::string_view text) {
    return file.size() >= at + text.size() &&
           std::equal(text.begin(), text.end(), file.begin() + static_cast<std::ptrdiff_t>(at),
                      [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
  };
  if (holds(0, "\xFF\xD8\xFF"sv)) return ImageFormat::kJpeg;
  if (holds(0, "\x89PNG\r\n\x1A\n"sv)) return ImageFormat::kPng;
  if (holds(0, "RIFF"sv) && holds(8, "WEBP"sv)) return ImageFormat::kWebp;
  return ImageFormat::kUnknown;
}

void check_sides(std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1) fail(ErrorKind::kData, "has {} x {} pixels; get it again", width, height);
  if (width * height > kMostImagePixels) {
    fail(ErrorKind::kData, "says that it has {} x {} pixels; more than {} are refused, so make it smaller", width,
         height, kMostImagePixels);
  }
}

ImageSides image_sides(std::span<const std::uint8_t> file, const PixelRules& rules) {
  const ImageSides sides = stored_sides(file);
  return rules.is_oriented ? oriented(sides, read_orientation(file).value) : sides;
}

DecodedImage decode_image(std::span<const std::uint8_t> file, int channels, const PixelRules& rules,
                          const ChoosePart& choose) {
  ARBALEST_CHECK(channels == 1 || channels == 3);
  ExifOrientation orientation = rules.is_oriented ? read_orientation(file) : ExifOrientation{};
  const auto choose_stored = [&](ImageSides stored) {
    WantedPart part = choose(oriented(stored, orientation.value));
    part.box = stored_box(part.box, stored, orientation.value);
    part.target = oriented(part.target, orientation.value);
    return part;
  };
  DecodedImage image = decode_stored(file, channels, rules, choose_stored);
  convert_channels(image, channels);
  image = oriented(std::move(image), orientation.value);
  image.damaged_orientation = std::move(orientation.problem);
  return image;
}

DecodedImage decode_whole_image(std::span<const std::uint8_t> file, int channels, const PixelRules& rules) {
  return decode_image(file, channels, rules, [](ImageSides sides) {
    return WantedPart{{0.0, 0.0, static_cast<double>(sides.width), static_cast<double>(sides.height)}, sides};
  });
}

}  // namespace arbalest::dataflow
