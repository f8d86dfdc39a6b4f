// The decoders of each image format, between which image_decoder.h chooses.
#pragma once

#include "dataflow/input/images/image_decoder.h"

namespace arbalest::dataflow {

// Throws ErrorKind::kData for an image without pixels or with too many.
void check_sides(std::int64_t width, std::int64_t height);

ImageSides jpeg_sides(std::span<const std::uint8_t> file);
DecodedImage decode_jpeg(std::span<const std::uint8_t> file, int channels, const ChooseLeastScale& choose);

ImageSides png_sides(std::span<const std::uint8_t> file);
DecodedImage decode_png(std::span<const std::uint8_t> file, int channels, const ChooseLeastScale& choose);

}  // namespace arbalest::dataflow
