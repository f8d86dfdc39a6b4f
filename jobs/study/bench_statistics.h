// What the runs of a case come to.
#pragma once

#include <optional>
#include <vector>

#include "jobs/study/bench_run.h"

namespace arbalest::jobs {

// Of runs, one of which that has not reached the target counts as larger than all that have: a median that is not set
// means that half of the runs or more did not.
struct BenchSpread {
  std::optional<double> median;
  std::optional<double> least;
  std::optional<double> most;
};

struct BenchStatistics {
  int runs = 0;      // planned
  int measured = 0;  // of which all below is
  int reached = 0;
  int not_converged = 0;  // diverged ones included
  int diverged = 0;
  int died = 0;
  int stopped = 0;               // not run ones included
  BenchSpread time_to_accuracy;  // seconds
  BenchSpread epochs_to_target;
  BenchSpread seconds_per_epoch;
  BenchSpread images_per_second;
  BenchSpread test_accuracy;  // of the model at the end
  BenchSpread best_test_accuracy;
  BenchSpread validation_accuracy;  // at the end; nothing where there is no validation set
  BenchSpread best_validation_accuracy;
  BenchSpread replica_distance;  // at the end
  // MLPerf's result: the mean without the fastest and the slowest, of at least three runs of which at most one has not
  // converged, and counts as the slowest.
  std::optional<double> trimmed_mean_seconds;
  BenchPhases phases;  // means
};

// What the runs of a case come to at the end of an epoch.
struct BenchEpochSpread {
  int epoch = 0;
  int runs = 0;  // that have come to it: one that reaches the target or diverges ends
  BenchSpread test_accuracy;
  BenchSpread validation_accuracy;
};

// A value that is infinite stands for a run that has not reached the target.
BenchSpread spread_of(std::vector<double> values);

// `runs`: of one case.
BenchStatistics summarize(const std::vector<BenchRun>& runs);
// By ascending epoch, of the runs that are measured.
std::vector<BenchEpochSpread> spreads_by_epoch(const std::vector<BenchRun>& runs);

}  // namespace arbalest::jobs
