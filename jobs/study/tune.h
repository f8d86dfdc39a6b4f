// Which number of learners trains a job fastest: measured while it trains, for `arbalest tune`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jobs/options/job_options.h"
#include "jobs/run/trainer.h"

namespace arbalest::jobs {

// Numbers of learners, as measured.
struct TunePoint {
  // What they are compared by.
  double goodput() const { return images_per_second * efficiency.value_or(1.0); }

  std::vector<int> learners;  // by device
  std::vector<int> threads;   // of each learner, by device; 1 on a GPU
  double images_per_second = 0.0;
  double error = 0.0;  // relative standard error
  std::optional<double>
      efficiency{};                // of an image, relative to a round of one learner; none if not known or asked for
  std::int64_t learner_bytes = 0;  // what all learners of all devices take of memory
};

struct TuneResult {
  std::string job;
  std::vector<std::string> devices;
  std::int64_t batch_size = 0;
  std::string precision;
  std::vector<int> chosen;  // learners by device; none if the search was stopped
  std::string reason;       // one sentence
  double images_per_second = 0.0;
  TuningObjective objective = TuningObjective::kThroughput;
  std::optional<double> noise_scale{};  // examples, when the search ended; none if not known or asked for
  int probes = 0;
  double seconds = 0.0;  // that the search took
  // Of the search, ascending. Where devices are of several kinds, which get their numbers one kind after the other: of
  // the last kind, while the others had what was chosen for them.
  std::vector<TunePoint> points;
  // Of every number that all devices may have alike, and of the chosen ones, measured in turns; ascending in learners
  // of all devices. Empty unless asked for.
  std::vector<TunePoint> sweep;
  std::optional<double> regret{};  // regret_of(), once there is a sweep
  bool is_complete = true;         // false: the sweep that was asked for is not there yet, or has been stopped
  int signal = 0;                  // that stopped it, in the search or in the sweep, which is empty then
};

struct TuneOptions {
  bool sweep = false;  // measure every number, too, not only those that the search asks for
  // Unless empty: gets what the search has found, before a sweep begins. What it throws ends the study.
  std::function<void(const TuneResult&)> found{};
};

// By what part the chosen numbers have less goodput than the best of the sweep, or, by throughput, are slower; none
// where that has not measured them.
std::optional<double> regret_of(const TuneResult& result);

// Trains without evaluation until the search has ended; keeps nothing. `job` has bounds (JobOptions::tuned). The
// learning rate is zero, but for goodput that of the job, as the noise scale is that of weights that learn. `tell` gets
// a line for each decision; `context.stop_signal` ends it with the round. Numbers for which there is no memory are left
// out of the sweep.
TuneResult tune(const JobOptions& job, const RunContext& context, const TuneOptions& options,
                const std::function<void(const std::string&)>& tell);

}  // namespace arbalest::jobs
