#include "dataflow/input/images/framing.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/elementwise/random_crop.h"

namespace arbalest::dataflow {

namespace {

// The largest centered box with the target's aspect ratio.
CropBox largest_box(ImageSides sides, ImageSides target) {
  const double scale =
      std::min(static_cast<double>(sides.width) / target.width, static_cast<double>(sides.height) / target.height);
  const double width = scale * target.width;
  const double height = scale * target.height;
  return {(sides.width - width) / 2.0, (sides.height - height) / 2.0, width, height};
}

CropBox random_box(const Framing& framing, ImageSides sides, ImageSides target, const ExamplePosition& position) {
  const auto [top, left, height, width] = engine::elementwise::random_crop(
      *framing.random_crop, framing.seed, position.batch, position.row, {.height = sides.height, .width = sides.width});
  if (height == 0) return largest_box(sides, target);
  return {static_cast<double>(left), static_cast<double>(top), static_cast<double>(width), static_cast<double>(height)};
}

}  // namespace

CropBox frame(const Framing& framing, ImageSides sides, ImageSides target, const ExamplePosition& position) {
  if (framing.random_crop) return random_box(framing, sides, target, position);
  if (!framing.resize) {
    if (sides.width != target.width || sides.height != target.height) {
      engine::fail(
          engine::ErrorKind::kData,
          "has {} x {} pixels, but the job's images have {} x {}; set decoding.resize to scale images of other sizes",
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
