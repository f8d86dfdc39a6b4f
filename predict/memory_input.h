// Examples in memory that a model is asked about.
#pragma once

#include <cstdint>
#include <span>

#include "predict/prediction_input.h"
#include "saved_model/model_description.h"

namespace arbalest::jobs {

// These functions copy the examples, one after the other, each of the description's shape. They throw kUsage if the
// model reads something else, if the last example is not whole, or if an id is out of range.
// Bytes of images.
PredictionInput open_memory(const ModelDescription& description, std::span<const std::uint8_t> bytes);
// Pixels of images, which are bytes / 255; or numbers.
PredictionInput open_memory(const ModelDescription& description, std::span<const float> numbers);
PredictionInput open_memory(const ModelDescription& description, std::span<const std::int32_t> ids);

}  // namespace arbalest::jobs
