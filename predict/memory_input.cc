#include "predict/memory_input.h"

#include <memory>
#include <utility>
#include <vector>

#include "dataflow/input/formats/ratings.h"
#include "dataflow/input/images/stored_images.h"
#include "engine/base/error.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using Input = ModelDescription::Input;

namespace {

constexpr const char* kName = "examples in memory";

[[noreturn]] void fail_kind(const ModelDescription& description, const char* given) {
  engine::fail(ErrorKind::kUsage, "the model '{}' reads {}, and {} were given", description.job,
               description.input == Input::kImage     ? "images: bytes, or floating-point pixels from 0 to 1"
               : description.input == Input::kNumbers ? "floating-point numbers"
                                                      : "ids: 32-bit integers",
               given);
}

// Returns the number of examples.
std::size_t count(const ModelDescription& description, std::size_t elements) {
  const auto of_one = static_cast<std::size_t>(description.shape.elements());
  if (elements % of_one == 0) return elements / of_one;
  engine::fail(ErrorKind::kUsage,
               "{} values are not a whole number of examples: each has {}, as the model's shape {} says", elements,
               of_one, to_string(description.shape));
}

template <typename Pixel>
PredictionInput stored(const ModelDescription& description, std::span<const Pixel> pixels) {
  std::vector<std::int32_t> labels(count(description, pixels.size()));
  return {std::make_unique<const TolerantDataset>(std::make_unique<const dataflow::StoredImages<Pixel>>(
      kName, input_of(description), description.normalization, std::vector<Pixel>(pixels.begin(), pixels.end()),
      std::move(labels)))};
}

}  // namespace

PredictionInput open_memory(const ModelDescription& description, std::span<const std::uint8_t> bytes) {
  if (description.input != Input::kImage) fail_kind(description, "bytes");
  return stored(description, bytes);
}

PredictionInput open_memory(const ModelDescription& description, std::span<const float> numbers) {
  if (description.input == Input::kIds) fail_kind(description, "floating-point numbers");
  return stored(description, numbers);
}

PredictionInput open_memory(const ModelDescription& description, std::span<const std::int32_t> ids) {
  if (description.input != Input::kIds) fail_kind(description, "ids");
  std::vector<float> targets(count(description, ids.size()));
  const std::size_t columns = description.ids.size();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t most = description.ids[i % columns];
    if (ids[i] >= 0 && ids[i] < most) continue;
    engine::fail(ErrorKind::kUsage, "example {}: column {}: id {} is not in [0, {}), the ids that the model knows",
                 i / columns, i % columns, ids[i], most);
  }
  return {std::make_unique<const TolerantDataset>(std::make_unique<const dataflow::Ratings>(
      kName, input_of(description), std::vector<std::int32_t>(ids.begin(), ids.end()), std::move(targets)))};
}

}  // namespace arbalest::jobs
