// The metrics of models that are trained without mini-batches.
#pragma once

#include <initializer_list>

#include "options/job_options.h"
#include "train/scores/scores.h"

namespace arbalest::jobs {

// Returns the metrics of the job's graph. A job without a graph trains a classifier of two classes.
dataflow::Metrics sparse_metrics(const JobOptions& job);

// `means`: over the examples, by the numbers of Metric::sum.
Scores scores_of_means(const dataflow::Metrics& metrics, std::initializer_list<double> means);

}  // namespace arbalest::jobs
