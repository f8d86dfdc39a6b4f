// Decodes JPEG, PNG and WebP images from the bytes of their files.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/images/pixel_rules.h"

namespace arbalest::dataflow {

struct ImageSides {
  int width = 0;
  int height = 0;
};

// A rectangle within an image, in pixels.
struct CropBox {
  double left = 0.0;
  double top = 0.0;
  double width = 0.0;
  double height = 0.0;
};

// Pixels of an image, or of a part of it.
struct DecodedImage {
  int width = 0;
  int height = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, channels]

  // Decoded size divided by the size in the file: JPEG images may be decoded to n/8 of their size.
  double scale = 1.0;
  // The place of the first pixel in the whole image, whose sides are those of the file, scaled.
  int left = 0;
  int top = 0;
  ImageSides whole = {};
  // Why the EXIF orientation was ignored; "" if it was not damaged.
  std::string damaged_orientation = {};
};

// Larger images are refused before memory is allocated for them.
inline constexpr std::int64_t kMostImagePixels = std::int64_t{1} << 25;

// The width and height of the upright image, as the header states them. Throws as decode_image().
ImageSides image_sides(std::span<const std::uint8_t> file, const PixelRules& rules);

// What the reader needs of an image: `box`, a part of it, resampled to `target`. Pixels that this does not read need
// not be decoded.
struct WantedPart {
  CropBox box;
  ImageSides target;
};

// Takes the sides of the upright image.
using ChoosePart = std::function<WantedPart(ImageSides)>;

// Decodes an image to `channels` channels: 1 (luma.h) or 3 (red, green, blue), by `rules`. Reduces 16-bit samples to 8
// bits, expands palettes, drops alpha channels, and converts CMYK as Pillow does. Calls `choose` once, and passes on
// what it throws. The result has all pixels that resample() reads then. Throws ErrorKind::kData, without saying where
// the bytes come from, for data that is neither JPEG, PNG nor WebP, truncated or corrupt, for animated WebP images, and
// for images without pixels or with more than kMostImagePixels.
DecodedImage decode_image(std::span<const std::uint8_t> file, int channels, const PixelRules& rules,
                          const ChoosePart& choose);

// Decodes all of the image.
DecodedImage decode_whole_image(std::span<const std::uint8_t> file, int channels, const PixelRules& rules);

}  // namespace arbalest::dataflow
