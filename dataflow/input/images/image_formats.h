// The decoders of each image format, between which image_decoder.h chooses.
#pragma once

#include "dataflow/input/images/image_decoder.h"

namespace arbalest::dataflow {

enum class ImageFormat { kJpeg, kPng, kWebp, kUnknown };

// Looks at the first bytes.
ImageFormat format_of(std::span<const std::uint8_t> file) noexcept;

// Throws ErrorKind::kData for an image without pixels or with too many.
void check_sides(std::int64_t width, std::int64_t height);

// The decoders work on the image as it is stored, before it is turned upright, and call `choose` with its sides. They
// may return 3 channels where 1 is asked for, and the other way round.
ImageSides jpeg_sides(std::span<const std::uint8_t> file);
DecodedImage decode_jpeg(std::span<const std::uint8_t> file, int channels, const PixelRules& rules,
                         const ChoosePart& choose);

ImageSides png_sides(std::span<const std::uint8_t> file);
DecodedImage decode_png(std::span<const std::uint8_t> file, int channels, const PixelRules& rules,
                        const ChoosePart& choose);

ImageSides webp_sides(std::span<const std::uint8_t> file);
DecodedImage decode_webp(std::span<const std::uint8_t> file, const ChoosePart& choose);

}  // namespace arbalest::dataflow
