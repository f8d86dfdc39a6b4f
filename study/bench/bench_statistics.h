// Statistics of the runs of a case.
#pragma once

#include <optional>
#include <vector>

#include "study/bench/bench_run.h"

namespace arbalest::jobs {

// Spread of a value over runs. A run that has not reached the target counts as larger than all others, so a median that
// is not set means that half of the runs or more did not reach it.
struct BenchSpread {
  std::optional<double> median;
  std::optional<double> least;
  std::optional<double> most;
};

struct BenchStatistics {
  int runs = 0;      // planned
  int measured = 0;  // measured; all values below are of these
  int reached = 0;
  int not_converged = 0;  // includes diverged ones
  int diverged = 0;
  int died = 0;
  int stopped = 0;               // includes runs that did not start
  BenchSpread time_to_accuracy;  // seconds
  BenchSpread epochs_to_target;
  BenchSpread seconds_per_epoch;
  BenchSpread images_per_second;
  BenchSpread test_accuracy;        // of the model at the end
  BenchSpread best_test_accuracy;   // empty if the test set was evaluated at the end only
  BenchSpread validation_accuracy;  // at the end; empty without a validation set
  BenchSpread best_validation_accuracy;
  BenchSpread replica_distance;  // at the end
  // MLPerf's result: the mean without the fastest and the slowest run. It needs at least three runs, of which at most
  // one has not converged; that one counts as the slowest.
  std::optional<double> trimmed_mean_seconds;
  BenchPhases phases;  // means
};

// Statistics of the runs of a case at the end of an epoch.
struct BenchEpochSpread {
  int epoch = 0;
  int runs = 0;  // runs that have completed it; a run ends when it reaches the target or diverges
  BenchSpread train_accuracy;
  BenchSpread test_accuracy;        // empty with a validation set
  BenchSpread validation_accuracy;  // empty without one
  BenchSpread decisive_accuracy;    // the accuracy that is compared with the target: one of the two
};

// An infinite value stands for a run that has not reached the target.
BenchSpread spread_of(std::vector<double> values);

// `runs`: those of one case.
BenchStatistics summarize(const std::vector<BenchRun>& runs);
// By ascending epoch, over the measured runs.
std::vector<BenchEpochSpread> spreads_by_epoch(const std::vector<BenchRun>& runs);

}  // namespace arbalest::jobs
