// The embedded dataset "digits": handwritten-looking digits rendered from stroke templates, so that a network can be
// trained where no data is. 28 x 28 pixels, ten classes in equal numbers, 20,000 images to train and 5,000 to test on.
// Its bytes never change: not with the machine, the number of threads or the seed of a job.
#pragma once

#include <memory>

#include "dataflow/input/dataset.h"
#include "dataflow/input/stored_images.h"
#include "engine/host/pool.h"

namespace arbalest::dataflow {

InputDescription digits_description();
// The training set's own statistics.
Normalization digits_normalization();
inline constexpr std::int64_t kDigitsTrainingExamples = 20'000;
inline constexpr std::int64_t kDigitsTestExamples = 5'000;

// Renders on `pool` and waits for the pool to be idle; not to be called by a task of the pool.
std::unique_ptr<ByteImages> load_digits(Split split, const Normalization& normalization, engine::host::Pool& pool);

}  // namespace arbalest::dataflow
