// The sums of one averaging tell how far the replicas are from the central model, and from each other.
#pragma once

#include <algorithm>
#include <cmath>

#include "sma/central_model.h"

namespace arbalest::scheduler {

// sqrt(mean_j |w_j - z|^2)
inline double distance_of(const sma::AveragingResult& result, double learners) {
  return std::sqrt(static_cast<double>(result.squared_distance) / learners);
}

// sqrt(mean_j |w_j - mean|^2); sum_j |w_j - mean|^2 = sum_j |w_j - z|^2 - k |mean - z|^2
inline double spread_of(const sma::AveragingResult& result, double learners) {
  const double squares = result.squared_distance;
  return std::sqrt(std::max(0.0, squares - static_cast<double>(result.squared_sum) / learners) / learners);
}

}  // namespace arbalest::scheduler
