// JPEG and PNG images from their files' bytes.
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

  // How many times smaller than in the file: JPEG images may be decoded to n/8 of their size.
  double scale = 1.0;
};

struct ImageSides {
  int width = 0;
  int height = 0;
};

// Images of more pixels are refused before memory is allocated for them.
inline constexpr std::int64_t kMostImagePixels = std::int64_t{1} << 25;

// The sides that the header states. Throws as decode_image().
ImageSides image_sides(std::span<const std::uint8_t> file);

// From the sides that the header states, a number in (0, 1]: the image may be decoded to a smaller size, but not below
// this part of its sides.
using ChooseLeastScale = std::function<double(ImageSides)>;

// `channels`: 1 (luma) or 3 (red, green, blue); images are converted to that, 16-bit samples to 8 bits, palettes to
// their colors, and an alpha channel is left out. `choose` is called once, for PNG images too. Throws what it throws,
// and ErrorKind::kData, without saying where the bytes come from, for what is neither JPEG nor PNG, truncated or
// corrupt data, CMYK, and images of no or of more than kMostImagePixels pixels.
DecodedImage decode_image(std::span<const std::uint8_t> file, int channels, const ChooseLeastScale& choose);

}  // namespace arbalest::dataflow
