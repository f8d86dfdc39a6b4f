#include "dataflow/input/images/orient.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace arbalest::dataflow {

namespace {

// How an upright image is read from the stored one.
struct Turn {
  bool swaps = false;       // the stored columns are the rows
  bool from_right = false;  // the stored columns are read from right to left
  bool from_below = false;  // the stored rows are read from bottom to top
};

constexpr Turn turn_of(int orientation) noexcept {
  return {.swaps = orientation >= 5,
          .from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
          .from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7};
}

// Reads pixel (x, y) of the upright image at `from` + x * right + y * below.
template <int channels>
void copy(const std::uint8_t* from, std::ptrdiff_t right, std::ptrdiff_t below, ImageSides sides, std::uint8_t* to) {
  constexpr int kTile = 32;  // pixels; keeps the lines of the stored image that are read in the cache
  for (int top = 0; top < sides.height; top += kTile) {
    for (int left = 0; left < sides.width; left += kTile) {
      const int end = std::min(left + kTile, sides.width);
      for (int y = top; y < std::min(top + kTile, sides.height); ++y) {
        const std::uint8_t* pixel = from + left * right + y * below;
        std::uint8_t* out = to + (std::ptrdiff_t{y} * sides.width + left) * channels;
        for (int x = left; x < end; ++x, pixel += right) {
          for (int c = 0; c < channels; ++c) *out++ = pixel[c];
        }
      }
    }
  }
}

}  // namespace

ImageSides oriented(ImageSides sides, int orientation) noexcept {
  return turn_of(orientation).swaps ? ImageSides{sides.height, sides.width} : sides;
}

CropBox stored_box(const CropBox& box, ImageSides sides, int orientation) noexcept {
  const Turn turn = turn_of(orientation);
  CropBox stored = turn.swaps ? CropBox{box.top, box.left, box.height, box.width} : box;
  if (turn.from_right) stored.left = sides.width - stored.left - stored.width;
  if (turn.from_below) stored.top = sides.height - stored.top - stored.height;
  return stored;
}

DecodedImage oriented(DecodedImage image, int orientation) {
  if (orientation == 1) return image;
  const Turn turn = turn_of(orientation);
  const ImageSides stored{image.width, image.height};
  const ImageSides sides = oriented(stored, orientation);
  const std::ptrdiff_t row = std::ptrdiff_t{stored.width} * image.channels;
  const std::ptrdiff_t column = turn.from_right ? -image.channels : image.channels;
  const std::ptrdiff_t line = turn.from_below ? -row : row;
  const std::uint8_t* first = image.pixels.data() + (turn.from_below ? row * (stored.height - 1) : 0) +
                              (turn.from_right ? row - image.channels : 0);
  std::vector<std::uint8_t> pixels(image.pixels.size());
  const auto copy_pixels = image.channels == 1 ? copy<1> : copy<3>;
  copy_pixels(first, turn.swaps ? line : column, turn.swaps ? column : line, sides, pixels.data());
  image.pixels = std::move(pixels);
  if (turn.from_right) image.left = image.whole.width - image.left - image.width;
  if (turn.from_below) image.top = image.whole.height - image.top - image.height;
  if (turn.swaps) std::swap(image.left, image.top);
  image.width = sides.width;
  image.height = sides.height;
  image.whole = oriented(image.whole, orientation);
  return image;
}

}  // namespace arbalest::dataflow
