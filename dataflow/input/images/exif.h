// Reads the orientation that cameras write into images.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace arbalest::dataflow {

struct ExifOrientation {
  // The value of EXIF's tag 0x0112, in [1, 8]; 1 (upright) if there is none.
  int value = 1;
  // Why the tag is ignored, as the end of a sentence about the file; "" if it is not damaged.
  std::string problem = {};
};

// Finds the EXIF data of a JPEG file (segment APP1), a PNG file (chunk eXIf) or a WebP file (chunk EXIF). Reads at most
// the bytes that are there; never throws for damage.
ExifOrientation read_orientation(std::span<const std::uint8_t> file);

// Reads the orientation in EXIF data, which has the form of a TIFF file.
ExifOrientation parse_exif(std::span<const std::uint8_t> exif);

}  // namespace arbalest::dataflow
