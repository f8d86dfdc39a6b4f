// The results of the tasks that have ended.
#pragma once

#include <cstdint>

#include "dataflow/layers/metrics.h"
#include "sma/staleness_clocks.h"

namespace arbalest::scheduler {

// The numbers of Progress, which processes send each other as bytes.
struct ProgressNumbers {
  std::int64_t tasks = 0;
  std::int64_t examples = 0;
  dataflow::MetricSums sums = {};
  // sqrt(mean over learners of |w_j - z|^2) without running statistics, at the last averaging that ended; 0 if none did
  double replica_distance = 0.0;
  // sqrt(mean over learners of |w_j - mean of w|^2), likewise
  double replica_spread = 0.0;
  double host_seconds = 0.0;  // CPU time of the calling thread for enqueueing; waiting is not counted
  // Squared norms of the learners' gradients g_j in measured iterations, summed over these iterations, and the number
  // of samples. With one learner, two successive gradients take the place of two learners'.
  double gradient_square_mean = 0.0;  // mean_j |g_j|^2
  double mean_gradient_square = 0.0;  // |mean_j g_j|^2
  std::int64_t gradient_samples = 0;

  void add(const ProgressNumbers& later);
};

// Results of this process's tasks that ended between two calls, in task order.
struct Progress : ProgressNumbers {
  sma::StalenessCounts staleness = {};  // number of pushes (async_sgd) or steps (hogwild) by staleness

  void add(const Progress& later);
};

}  // namespace arbalest::scheduler
