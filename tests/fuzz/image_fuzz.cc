// Input: 'x' and EXIF data; or 'w', 'p' or 'g', and an image file that is decoded whole, in part, or to gray by the
// rules of older versions.
#include <algorithm>

#include "dataflow/input/images/exif.h"
#include "dataflow/input/images/image_decoder.h"
#include "dataflow/input/images/resample.h"
#include "tests/fuzz/refused.h"

namespace {

using namespace arbalest;
using dataflow::ImageSides;

// Larger images take too long.
constexpr int kLongestSide = 512;

// Decodes the file and resamples the middle of the image.
void decode(std::span<const std::uint8_t> file, int channels, const dataflow::PixelRules& rules, int target) {
  const ImageSides sides = dataflow::image_sides(file, rules);
  if (std::max(sides.width, sides.height) > kLongestSide) return;
  const dataflow::CropBox box{sides.width / 4.0, sides.height / 3.0, sides.width / 2.0, sides.height / 2.0};
  const dataflow::DecodedImage image = dataflow::decode_image(file, channels, rules, [&](ImageSides) {
    return dataflow::WantedPart{box, {target, target}};
  });
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(channels * target * target));
  const double scale = image.scale;
  dataflow::resample(image, {box.left * scale, box.top * scale, box.width * scale, box.height * scale}, target, target,
                     pixels.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  if (data[0] == 'x') {
    const int value = dataflow::parse_exif(rest).value;
    if (value < 1 || value > 8) std::abort();
    return 0;
  }
  fuzz::is_refused({engine::ErrorKind::kData}, [&] {
    if (data[0] == 'w') {
      decode(rest, 3, {}, 100);
    } else if (data[0] == 'p') {
      decode(rest, 3, {}, 3);
    } else {
      decode(rest, 1, dataflow::kUnrecordedRules, 5);
    }
  });
  return 0;
}
