// Finds the number of learners that trains a job fastest, measured while it trains, for `arbalest tune`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jobs/options/job_options.h"
#include "jobs/run/trainer.h"

namespace arbalest::jobs {

// Measurement of one number of learners.
struct TunePoint {
  // The value by which points are compared.
  double goodput() const { return images_per_second * efficiency.value_or(1.0); }

  std::vector<int> learners;  // by device
  std::vector<int> threads;   // per learner, by device; 1 on a GPU
  double images_per_second = 0.0;
  double error = 0.0;  // relative standard error
  // Value of an image, relative to a round of one learner; none if unknown or not asked for.
  std::optional<double> efficiency{};
  std::int64_t learner_bytes = 0;  // memory of all learners on all devices
};

struct TuneResult {
  std::string job;
  std::vector<std::string> devices;
  std::int64_t batch_size = 0;
  std::string precision;
  std::vector<int> chosen;  // learners by device; empty if the search was stopped
  std::string reason;       // one sentence
  double images_per_second = 0.0;
  TuningObjective objective = TuningObjective::kThroughput;
  std::string synchronization = "s_sgd";  // scheme under which it was measured
  std::optional<double> noise_scale{};    // in examples, at the end of the search; none if unknown or not asked for
  int probes = 0;
  double seconds = 0.0;  // duration of the search
  // Points of the search, ascending. If there are several kinds of devices, which are tuned one kind after the other:
  // points of the last kind, while the others had their chosen numbers.
  std::vector<TunePoint> points;
  // Measurements of every number that all devices may have alike, and of the chosen numbers, measured in turns;
  // ascending in learners of all devices. Empty unless asked for.
  std::vector<TunePoint> sweep;
  std::optional<double> regret{};  // regret_of(), once there is a sweep
  bool is_complete = true;         // false: the sweep that was asked for is missing or was stopped
  int signal = 0;                  // signal that stopped the search or the sweep (which is then empty), or 0
};

struct TuneOptions {
  bool sweep = false;  // measure every number, not only those that the search asks for
  // Unless empty, called with the result of the search before a sweep begins. If it throws, the study ends.
  std::function<void(const TuneResult&)> found{};
};

// Fraction by which the chosen numbers have less goodput (or throughput) than the best of the sweep; none if the sweep
// has not measured the chosen numbers.
std::optional<double> regret_of(const TuneResult& result);

// Trains without evaluation until the search has ended; stores nothing. `job` must have bounds (JobOptions::tuned). The
// learning rate is zero; for goodput it is the job's, because the noise scale belongs to weights that learn. `tell`
// gets a line for each decision. `context.stop_signal` ends the study after the round. The sweep leaves out numbers for
// which there is no memory.
TuneResult tune(const JobOptions& job, const RunContext& context, const TuneOptions& options,
                const std::function<void(const std::string&)>& tell);

}  // namespace arbalest::jobs
