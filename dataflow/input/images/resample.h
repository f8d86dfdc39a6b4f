// Cuts a rectangle out of a decoded image and scales it.
#pragma once

#include <cstdint>

#include "dataflow/input/images/image_decoder.h"

namespace arbalest::dataflow {

// A rectangle within the image, in pixels.
struct CropBox {
  double left = 0.0;
  double top = 0.0;
  double width = 0.0;
  double height = 0.0;
};

// Writes the box as bytes [channels, height, width], rounded. Enlarges by linear interpolation. Shrinks with a triangle
// filter as wide as the distance between output pixels, to prevent aliasing (like Pillow's BILINEAR).
void resample(const DecodedImage& image, const CropBox& box, int height, int width, std::uint8_t* out);

}  // namespace arbalest::dataflow
