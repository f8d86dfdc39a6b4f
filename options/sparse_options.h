// Options of a job without mini-batches and replicas: logistic regression over sparse rows, or hogwild on ratings.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "scheduler/replicas/learning_rate.h"
#include "scheduler/sparse/proximal_options.h"

namespace arbalest::jobs {

struct DelayedProximalOptions {
  scheduler::ProximalOptions solver;  // with the job's seed and bias
  double tolerance = 1e-5;            // relative change of the objective at which the run ends
};

struct HogwildOptions {
  scheduler::LearningRateSchedule learning_rate;
};

struct SparseOptions {
  // Directory of the files, relative to the data root unless absolute. Up to `bias`, sparse_logistic only.
  std::string directory;
  std::string train;
  std::string test;
  std::int64_t features = 0;
  bool bias = true;
  std::variant<DelayedProximalOptions, HogwildOptions> scheme;
};

}  // namespace arbalest::jobs
