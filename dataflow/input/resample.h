// Cuts a rectangle out of a decoded image and brings it to another size.
#pragma once

#include <cstdint>

#include "dataflow/input/image_decoder.h"

namespace arbalest::dataflow {

// In pixels of the image; within it.
struct CropBox {
  double left = 0.0;
  double top = 0.0;
  double width = 0.0;
  double height = 0.0;
};

// Writes the box as [channels, height, width], rounded to bytes. Linear interpolation where it grows; where it shrinks,
// a triangle filter as wide as an output pixel's distance to the next, so that nothing aliases (the way of Pillow's
// BILINEAR).
void resample(const DecodedImage& image, const CropBox& box, int height, int width, std::uint8_t* out);

}  // namespace arbalest::dataflow
