// Chooses which part of an image the model sees.
#pragma once

#include "dataflow/input/dataset.h"
#include "dataflow/input/images/encoded_images.h"
#include "dataflow/input/images/image_decoder.h"
#include "dataflow/input/images/resample.h"

namespace arbalest::dataflow {

// The part of an image of `sides` that becomes an image of `target`. Throws ErrorKind::kData, without naming the
// record, if the framing does not resize and the image has another size.
CropBox frame(const Framing& framing, ImageSides sides, ImageSides target, const ExamplePosition& position);

}  // namespace arbalest::dataflow
