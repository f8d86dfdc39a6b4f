// Which part of an image of any size the model sees.
#pragma once

#include "dataflow/input/dataset.h"
#include "dataflow/input/encoded_images.h"
#include "dataflow/input/image_decoder.h"
#include "dataflow/input/resample.h"

namespace arbalest::dataflow {

// The part of an image of `sides` that becomes an image of `target`. Throws ErrorKind::kData, without the record, where
// the framing brings images to no size and this one has another.
CropBox frame(const Framing& framing, ImageSides sides, ImageSides target, const ExamplePlace& place);

}  // namespace arbalest::dataflow
