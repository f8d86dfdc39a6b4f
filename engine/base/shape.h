// Shape of a tensor, outermost extent first: images are [n, c, h, w], vectors of features [n, c], scalars [1].
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace arbalest::engine {

class Shape {
 public:
  static constexpr int kMaxRank = 5;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);

  int rank() const noexcept { return rank_; }
  std::int64_t operator[](int axis) const noexcept { return extents_[static_cast<std::size_t>(axis)]; }
  void append(std::int64_t extent);

  // Product of all extents; 1 for rank 0.
  std::int64_t elements() const noexcept;
  // Product of all extents except the first: the size of one example.
  std::int64_t elements_per_example() const noexcept;
  // Returns a copy of the shape whose first extent is `batch`.
  Shape with_batch(std::int64_t batch) const;

  const std::int64_t* begin() const noexcept { return extents_.data(); }
  const std::int64_t* end() const noexcept { return extents_.data() + rank_; }

  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

// "32x1x28x28"
std::string to_string(const Shape& shape);

}  // namespace arbalest::engine
