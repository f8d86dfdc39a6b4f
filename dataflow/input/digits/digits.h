// The embedded dataset "digits": handwritten-looking digits rendered from stroke templates, so that a network can be
// trained without any data files. 28 x 28 pixels, ten classes of equal size, 20,000 training and 5,000 test images. Its
// bytes depend on neither machine, number of threads nor a job's seed.
#pragma once

#include <memory>

#include "dataflow/input/dataset.h"
#include "dataflow/input/images/stored_images.h"
#include "engine/host/pool.h"

namespace arbalest::dataflow {

InputDescription digits_description();
// Mean and standard deviation of the training set.
Normalization digits_normalization();
inline constexpr std::int64_t kDigitsTrainingExamples = 20'000;
inline constexpr std::int64_t kDigitsTestExamples = 5'000;

// Renders on `pool` and waits for it; a task of the pool must not call this.
std::unique_ptr<ByteImages> load_digits(Split split, const Normalization& normalization, engine::host::Pool& pool);

}  // namespace arbalest::dataflow
