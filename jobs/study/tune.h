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
  std::vector<int> learners;  // by device
  std::vector<int> threads;   // of each learner, by device; 1 on a GPU
  double images_per_second = 0.0;
  double error = 0.0;              // relative standard error
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

// By what part the chosen numbers are slower than the best of the sweep; none where that has not measured them.
std::optional<double> regret_of(const TuneResult& result);

// Trains without evaluation, at a learning rate of zero, until the search has ended; keeps nothing. `job` has bounds
// (JobOptions::tuned). `tell` gets a line for each decision; `context.stop_signal` ends it with the round. Numbers for
// which there is no memory are left out of the sweep.
TuneResult tune(const JobOptions& job, const RunContext& context, const TuneOptions& options,
                const std::function<void(const std::string&)>& tell);

}  // namespace arbalest::jobs
