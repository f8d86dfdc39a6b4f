#include "dataflow/input/framing.h"

#include <algorithm>
#include <cmath>

#include "dataflow/input/random_sequence.h"
#include "engine/error.h"

namespace arbalest::dataflow {

namespace {

constexpr std::uint64_t kCropStream = 0x63726F70'00000000;  // keeps crops apart from other uses of a job's seed
constexpr int kAttempts = 10;

double uniform(RandomSequence& random) { return static_cast<double>(random.next() >> 11U) * 0x1.0p-53; }

// The largest box of the target's aspect, in the middle.
CropBox largest_box(ImageSides sides, ImageSides target) {
  const double scale =
      std::min(static_cast<double>(sides.width) / target.width, static_cast<double>(sides.height) / target.height);
  const double width = scale * target.width;
  const double height = scale * target.height;
  return {(sides.width - width) / 2.0, (sides.height - height) / 2.0, width, height};
}

CropBox random_box(const Framing& framing, ImageSides sides, ImageSides target, const ExamplePlace& place) {
  RandomSequence random(framing.seed, kCropStream + place.row, place.batch);
  const RandomResizedCrop& crop = *framing.random_crop;
  const double log_aspect = std::log(crop.max_aspect);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double area =
        (crop.min_area + (1.0 - crop.min_area) * uniform(random)) * static_cast<double>(sides.width) * sides.height;
    const double aspect = std::exp((2.0 * uniform(random) - 1.0) * log_aspect);
    const auto width = static_cast<int>(std::lround(std::sqrt(area * aspect)));
    const auto height = static_cast<int>(std::lround(std::sqrt(area / aspect)));
    if (width < 1 || height < 1 || width > sides.width || height > sides.height) continue;
    const auto left = static_cast<double>(random.below(static_cast<std::uint64_t>(sides.width - width + 1)));
    const auto top = static_cast<double>(random.below(static_cast<std::uint64_t>(sides.height - height + 1)));
    return {left, top, static_cast<double>(width), static_cast<double>(height)};
  }
  return largest_box(sides, target);
}

}  // namespace

CropBox frame(const Framing& framing, ImageSides sides, ImageSides target, const ExamplePlace& place) {
  if (framing.random_crop) return random_box(framing, sides, target, place);
  if (!framing.resize) {
    if (sides.width != target.width || sides.height != target.height) {
      engine::fail(
          engine::ErrorKind::kData,
          "has {} x {} pixels, but the job's images have {} x {}; set resize, so that images of any size become "
          "that",
          sides.width, sides.height, target.width, target.height);
    }
    return {0.0, 0.0, static_cast<double>(sides.width), static_cast<double>(sides.height)};
  }
  const double scale = static_cast<double>(std::min(sides.width, sides.height)) / *framing.resize;
  const double width = scale * target.width;
  const double height = scale * target.height;
  return {(sides.width - width) / 2.0, (sides.height - height) / 2.0, width, height};
}

}  // namespace arbalest::dataflow
