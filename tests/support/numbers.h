// Random numbers for tests, and distances between tensors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace arbalest::tests {

// Uniform in [-1, 1), rounded to float32 so that reference and operator read the same numbers.
inline std::vector<double> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double uniform = static_cast<double>(generator()) / 2147483648.0 - 1.0;
    values.push_back(static_cast<double>(static_cast<float>(uniform)));
  }
  return values;
}

inline std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::vector<float> floats;
  for (const double value : random_values(count, seed)) floats.push_back(static_cast<float>(value));
  return floats;
}

inline double norm(const std::vector<double>& values) {
  double squares = 0.0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

// Returns |actual - expected| / |expected| in the Euclidean norm, or |actual| if all of `expected` is zero. The error
// is infinite if the sizes differ.
template <typename Number>
double relative_error(const std::vector<Number>& actual, const std::vector<double>& expected) {
  if (actual.size() != expected.size()) return HUGE_VAL;
  std::vector<double> difference;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference.push_back(static_cast<double>(actual[i]) - expected[i]);
  }
  const double scale = norm(expected);
  return norm(difference) / (scale > 0.0 ? scale : 1.0);
}

// Returns the largest |a[i] - b[i]|; infinite if the sizes differ.
template <typename Number>
double largest_difference(const std::vector<Number>& a, const std::vector<Number>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(a[i] - b[i])));
  return largest;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Gradient of `function` at `point`, (f(x + h) - f(x - h)) / 2h along each axis.
inline std::vector<double> central_differences(const std::function<double(const std::vector<double>&)>& function,
                                               std::vector<double> point, double step = 1e-5) {
  std::vector<double> gradient;
  for (double& x : point) {
    const double middle = x;
    x = middle + step;
    const double above = function(point);
    x = middle - step;
    const double below = function(point);
    x = middle;
    gradient.push_back((above - below) / (2.0 * step));
  }
  return gradient;
}

}  // namespace arbalest::tests
