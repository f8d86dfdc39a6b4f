#include "dataflow/input/input_description.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::DType;

std::size_t TensorDescription::bytes() const noexcept {
  return static_cast<std::size_t>(shape.elements()) * engine::size_of(dtype);
}

std::int64_t TensorDescription::limit(std::int64_t element) const {
  return limits.size() == 1 ? limits.front() : limits.at(static_cast<std::size_t>(element));
}

std::span<const TensorDescription> InputDescription::features() const noexcept {
  return std::span(tensors).first(tensors.empty() ? 0 : tensors.size() - 1);
}

const TensorDescription& InputDescription::only_feature() const {
  ARBALEST_CHECK(features().size() == 1);
  return tensors.front();
}

const TensorDescription& InputDescription::label() const {
  ARBALEST_CHECK(is_known());
  return tensors.back();
}

std::size_t InputDescription::feature_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const TensorDescription& feature : features()) bytes += feature.bytes();
  return bytes;
}

const TensorDescription* InputDescription::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(tensors, name, &TensorDescription::name);
  return found == tensors.end() ? nullptr : &*found;
}

std::span<const std::int64_t> InputDescription::ids() const noexcept {
  const TensorDescription* ids = find(kIds);
  return ids == nullptr ? std::span<const std::int64_t>() : std::span(ids->limits);
}

const engine::Shape& InputDescription::image() const {
  const TensorDescription* image = find(kImage);
  ARBALEST_CHECK(image != nullptr);
  return image->shape;
}

bool InputDescription::predicts_numbers() const noexcept {
  return is_known() && tensors.back().dtype == DType::kFloat32;
}

std::int64_t InputDescription::classes() const noexcept {
  if (!is_known()) return 0;
  return predicts_numbers() ? 1 : tensors.back().limits.front();
}

InputDescription image_input(const engine::Shape& image, std::int64_t classes) {
  return {
      {{InputDescription::kImage, DType::kFloat32, image}, {InputDescription::kLabel, DType::kInt32, {}, {classes}}}};
}

InputDescription ratings_input(std::vector<std::int64_t> ids) {
  const engine::Shape columns{static_cast<std::int64_t>(ids.size())};
  return {{{InputDescription::kIds, DType::kInt32, columns, std::move(ids)},
           {InputDescription::kLabel, DType::kFloat32, {}}}};
}

}  // namespace arbalest::dataflow
