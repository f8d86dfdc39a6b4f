#include "engine/base/shape.h"

#include "engine/base/error.h"

namespace arbalest::engine {

Shape::Shape(std::initializer_list<std::int64_t> extents) {
  for (const std::int64_t extent : extents) append(extent);
}

void Shape::append(std::int64_t extent) {
  ARBALEST_CHECK(rank_ < kMaxRank && extent >= 0);
  extents_[static_cast<std::size_t>(rank_++)] = extent;
}

std::int64_t Shape::elements() const noexcept {
  std::int64_t product = 1;
  for (const std::int64_t extent : *this) product *= extent;
  return product;
}

std::int64_t Shape::elements_per_example() const noexcept {
  std::int64_t product = 1;
  for (int axis = 1; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

Shape Shape::with_batch(std::int64_t batch) const {
  ARBALEST_CHECK(rank_ > 0);
  Shape result = *this;
  result.extents_[0] = batch;
  return result;
}

std::string to_string(const Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text;
}

}  // namespace arbalest::engine
