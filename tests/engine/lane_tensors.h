// Tensors whose examples are in lanes, and weights in the orders that convolutions of such tensors use.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "engine/base/alignment.h"
#include "engine/base/shape.h"
#include "engine/cpu/lanes/kernels.h"
#include "engine/elementwise/bfloat16.h"
#include "tests/engine/operator_run.h"

namespace arbalest::tests {

// A cache line, because vectors are loaded from whole cache lines. Each number is NaN until it is written.
struct alignas(engine::kAlignment) Line {
  Line() { std::memset(units, 0xFF, sizeof(units)); }
  engine::cpu::LaneUnit units[16];
};
template <typename T>
class Tensor {
 public:
  explicit Tensor(std::int64_t count)
      : lines_((static_cast<std::size_t>(count) * sizeof(T) + sizeof(Line) - 1) / sizeof(Line)) {}
  T* data() { return reinterpret_cast<T*>(units()); }
  engine::cpu::LaneUnit* units() { return lines_.data()->units; }

 private:
  std::vector<Line> lines_;
};

// Calls body(canonical index, index in lanes).
template <typename Body>
void for_images(const engine::Shape& shape, const Body& body) {
  const std::int64_t example = shape.elements_per_example();
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const std::int64_t n = i / example;
    body(i, (n / engine::cpu::kLanes * example + i % example) * engine::cpu::kLanes + n % engine::cpu::kLanes);
  }
}
template <typename T>
Tensor<T> to_lanes(const engine::Shape& shape, const Values& values) {
  Tensor<T> tensor(shape.elements());
  for_images(shape, [&](std::int64_t canonical, std::int64_t lane) {
    engine::elementwise::store(static_cast<float>(values[static_cast<std::size_t>(canonical)]), tensor.data()[lane]);
  });
  return tensor;
}
template <typename T>
Floats from_lanes(const engine::Shape& shape, Tensor<T>& tensor) {
  Floats values(static_cast<std::size_t>(shape.elements()));
  for_images(shape, [&](std::int64_t canonical, std::int64_t lane) {
    values[static_cast<std::size_t>(canonical)] = engine::elementwise::load(tensor.data()[lane]);
  });
  return values;
}
template <typename T>
Tensor<T> tensor_of(const Floats& values) {
  Tensor<T> tensor(static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) engine::elementwise::store(values[i], tensor.data()[i]);
  return tensor;
}

// Reorders values [rows, middle, columns] to [columns, middle, rows].
template <typename Number>
Floats swapped(const std::vector<Number>& values, std::int64_t rows, std::int64_t middle, std::int64_t columns) {
  Floats result;
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::int64_t m = 0; m < middle; ++m) {
      for (std::int64_t row = 0; row < rows; ++row) {
        result.push_back(static_cast<float>(values[static_cast<std::size_t>((row * columns + column) * middle + m)]));
      }
    }
  }
  return result;
}
// Reorders [filters, channels, taps] to [filters, taps, channels].
inline Floats channels_last(const Values& weights, std::int64_t channels, std::int64_t taps) {
  Floats result(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t filter = at / (channels * taps);
    result[static_cast<std::size_t>((filter * taps + at % taps) * channels + at / taps % channels)] =
        static_cast<float>(weights[i]);
  }
  return result;
}

}  // namespace arbalest::tests
