// Decodes WebP with libwebp.
#include <webp/decode.h>

#include "dataflow/input/images/image_formats.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

// The length of the file as its header states it. libwebp does not need the bytes behind the pixels.
void check_length(std::span<const std::uint8_t> file) {
  constexpr std::size_t kBefore = 8;  // "RIFF" and the length of what follows
  const std::uint32_t stated = file[4] | file[5] << 8U | file[6] << 16U | std::uint32_t{file[7]} << 24U;
  if (file.size() - kBefore < stated) fail(ErrorKind::kData, "is no valid WebP image: it is truncated; get it again");
}

}  // namespace

ImageSides webp_sides(std::span<const std::uint8_t> file) {
  check_length(file);
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(file.data(), file.size(), &features);
  if (status != VP8_STATUS_OK) {
    fail(ErrorKind::kData, "is no valid WebP image: {}; get it again",
         status == VP8_STATUS_NOT_ENOUGH_DATA ? "it is truncated" : "its header is damaged");
  }
  if (features.has_animation != 0) {
    fail(ErrorKind::kData, "is an animated WebP image; save the frame that is meant as an image of its own");
  }
  check_sides(features.width, features.height);
  return {features.width, features.height};
}

DecodedImage decode_webp(std::span<const std::uint8_t> file, const ChoosePart& choose) {
  constexpr int kChannels = 3;
  const ImageSides sides = webp_sides(file);
  choose(sides);
  DecodedImage image{.width = sides.width, .height = sides.height, .channels = kChannels, .pixels = {}, .whole = sides};
  const int row_bytes = sides.width * kChannels;
  image.pixels.resize(static_cast<std::size_t>(row_bytes) * static_cast<std::size_t>(sides.height));
  if (WebPDecodeRGBInto(file.data(), file.size(), image.pixels.data(), image.pixels.size(), row_bytes) == nullptr) {
    fail(ErrorKind::kData, "is no valid WebP image: its data is damaged; get it again");
  }
  return image;
}

}  // namespace arbalest::dataflow
