// Decodes JPEG and PNG images from the bytes of their files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace arbalest::dataflow {

struct DecodedImage {
  int width = 0;
  int height = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, channels]

  // Size in the file divided by decoded size: JPEG images may be decoded to n/8 of their size.
  double scale = 1.0;
};

struct ImageSides {
  int width = 0;
  int height = 0;
};

// Larger images are refused before memory is allocated for them.
inline constexpr std::int64_t kMostImagePixels = std::int64_t{1} << 25;

// The width and height that the header states. Throws as decode_image().
ImageSides image_sides(std::span<const std::uint8_t> file);

// Takes the sides that the header states and returns a number in (0, 1]. The image may be decoded to a smaller size,
// but not below this fraction of its sides.
using ChooseLeastScale = std::function<double(ImageSides)>;

// Decodes an image to `channels` channels: 1 (luma) or 3 (red, green, blue). Reduces 16-bit samples to 8 bits, expands
// palettes and drops alpha channels. Calls `choose` once, for PNG images too, and passes on what it throws. Throws
// ErrorKind::kData, without saying where the bytes come from, for data that is neither JPEG nor PNG, truncated or
// corrupt, for CMYK, and for images without pixels or with more than kMostImagePixels.
DecodedImage decode_image(std::span<const std::uint8_t> file, int channels, const ChooseLeastScale& choose);

}  // namespace arbalest::dataflow
