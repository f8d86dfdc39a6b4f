// Cuts a rectangle out of a decoded image and scales it.
#pragma once

#include <cstdint>

#include "dataflow/input/images/image_decoder.h"

namespace arbalest::dataflow {

// Neighboring pixels along one axis of an image.
struct PixelRange {
  int first = 0;
  int count = 0;
};

// The pixels that resample() reads along an axis of `inputs` pixels for `outputs` pixels of a box.
PixelRange resampled_range(int inputs, double start, double length, int outputs);

// Writes the box, which lies within the whole image, as bytes [channels, height, width], rounded. Enlarges by linear
// interpolation. Shrinks with a triangle filter as wide as the distance between output pixels, to prevent aliasing
// (like Pillow's BILINEAR). The image has at least the pixels of resampled_range().
void resample(const DecodedImage& image, const CropBox& box, int height, int width, std::uint8_t* out);

}  // namespace arbalest::dataflow
