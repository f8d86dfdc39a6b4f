#include "scheduler/sparse/row_margins.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "scheduler/sparse/logistic_loss.h"

namespace arbalest::scheduler {

namespace {

constexpr double kLargestCurvature = 0.25;  // of the logistic loss

// min(p (1 - p) exp(z), 1/4) for z >= 0, with p = wrong_probability(margin). With q = max(p, 1 - p) >= 1/2 the first is
// exp(z - |margin|) q^2, which neither overflows nor is lost where p rounds to 0 or 1.
double bounded_curvature(double margin, double p, double z) {
  const double exponent = z - std::abs(margin);
  if (exponent >= 0.0) return kLargestCurvature;
  const double q = std::max(p, 1.0 - p);
  return std::min(std::exp(exponent) * q * q, kLargestCurvature);
}

}  // namespace

RowMargins::RowMargins(const dataflow::SparseRows& rows, std::int64_t first, std::int64_t last,
                       dataflow::ColumnOfOnes ones)
    : columns_(dataflow::columns_of(rows, first, last, ones)),
      labels_(rows.labels.begin() + first, rows.labels.begin() + last),
      margins_(labels_.size(), 0.0),
      wrong_(labels_.size(), wrong_probability(0.0)) {}

BlockSums RowMargins::sums(const CoordinateBlock& block, std::span<const double> bounds,
                           std::span<const std::uint8_t> is_active) const {
  BlockSums sums;
  sums.numbers.reserve(2 * static_cast<std::size_t>(block.size()));
  for (auto column = static_cast<std::size_t>(block.first); column < static_cast<std::size_t>(block.end); ++column) {
    if (is_active[column] == 0) continue;
    double gradient = 0.0;
    double curvature = 0.0;
    const auto end = static_cast<std::size_t>(columns_.starts[column + 1]);
    for (auto e = static_cast<std::size_t>(columns_.starts[column]); e < end; ++e) {
      const auto row = static_cast<std::size_t>(columns_.rows[e]);
      const double x = columns_.values[e];
      const double p = wrong_[row];
      gradient -= labels_[row] * p * x;
      curvature += bounded_curvature(margins_[row], p, std::abs(x) * bounds[column]) * x * x;
    }
    sums.numbers.push_back(gradient);
    sums.numbers.push_back(curvature);
  }
  return sums;
}

void RowMargins::apply(const CoordinateBlock& block, std::span<const double> steps) {
  for (std::int64_t j = block.first; j < block.end; ++j) {
    const double step = steps[static_cast<std::size_t>(j - block.first)];
    if (step == 0.0) continue;
    const auto end = static_cast<std::size_t>(columns_.starts[static_cast<std::size_t>(j) + 1]);
    for (auto e = static_cast<std::size_t>(columns_.starts[static_cast<std::size_t>(j)]); e < end; ++e) {
      const auto row = static_cast<std::size_t>(columns_.rows[e]);
      margins_[row] += labels_[row] * step * columns_.values[e];
      wrong_[row] = wrong_probability(margins_[row]);
    }
  }
}

RowMargins::Score RowMargins::score() const {
  Score score;
  for (const double margin : margins_) {
    score.loss += logistic_loss(margin);
    score.right += margin > 0.0 ? 1 : 0;
  }
  return score;
}

void RowMargins::bring_back() {
  margins_ = kept_;
  std::ranges::transform(margins_, wrong_.begin(), wrong_probability);
}

}  // namespace arbalest::scheduler
