// Turns images as their EXIF orientation says.
#pragma once

#include "dataflow/input/images/image_decoder.h"

namespace arbalest::dataflow {

// `orientation`: EXIF's value in [1, 8]. From 5 on, width and height change places.
// 1 as stored, 2 mirrored left to right, 3 turned by 180 degrees, 4 mirrored top to bottom, 5 mirrored at the diagonal
// from the upper left, 6 to be turned clockwise by 90 degrees, 7 mirrored at the other diagonal, 8 to be turned
// counterclockwise by 90 degrees.

// The sides of the upright image of a stored one, and the other way round.
ImageSides oriented(ImageSides sides, int orientation) noexcept;

// The part of the stored image, of `sides`, that is the part `box` of the upright one.
CropBox stored_box(const CropBox& box, ImageSides sides, int orientation) noexcept;

// The upright image.
DecodedImage oriented(DecodedImage image, int orientation);

}  // namespace arbalest::dataflow
