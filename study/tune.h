// Finds the number of learners that trains a job fastest, measured while it trains, for `arbalest tune`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "options/job_options.h"
#include "train/train.h"

namespace arbalest::jobs {

// Measurement of one number of learners.
struct TunePoint {
  // The value by which points are compared.
  double goodput() const { return images_per_second * efficiency.value_or(1.0); }

  std::vector<int> learners;  // by device
  std::vector<int> threads;   // per learner, by device; 1 on a GPU
  double images_per_second = 0.0;
  double error = 0.0;  // relative standard error
  int windows = 0;     // windows that count
  // Of these windows: the part of the processor time that the run wanted but did not get, images per second of
  // processor time, and the relative standard error of that; none if it is not known.
  std::optional<double> lost{};
  std::optional<double> images_per_processor_second{};
  double processor_error = 0.0;
  int cores = 1;  // that its threads can use, of all devices
  // Value of an image, relative to a round of one learner; none if unknown or not asked for.
  std::optional<double> efficiency{};
  std::int64_t learner_bytes = 0;  // memory of all learners on all devices
};

// How quiet the machine was. The processor time is that of engine/host/processor_time.h.
struct TuneMachine {
  bool is_known = false;      // whether the processor time was measured; false on GPUs
  bool was_quiet = true;      // whether no disturbed window counts; true if nothing is known
  double lost = 0.0;          // part of the processor time that the run wanted but did not get, over all windows
  int disturbed_windows = 0;  // windows that were repeated
};

// How many times as fast as one learner on each device the chosen numbers are.
struct TuneGain {
  double ratio = 1.0;
  double error = 0.0;              // standard error of the ratio
  bool by_processor_time = false;  // on a busy machine: by images per processor second, with all cores in use
  bool is_lower_bound = false;     // the ratio to a learner whose threads lose nothing by working together
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
  std::optional<TunePoint> baseline{};  // one learner on each device, also if the job's bounds exclude it
  // Measurements of one learner on each device with fewer threads than there are cores, by ascending threads. They are
  // never chosen: the devices of a job decide about threads.
  std::vector<TunePoint> fewer_threads{};
  TuneMachine machine{};
  std::optional<TuneGain> gain{};  // none if one learner was not measured
  std::optional<double> regret{};  // regret_of(), once there is a sweep
  double regret_error = 0.0;       // standard error of the regret
  bool is_complete = true;         // false: the sweep that was asked for is missing or was stopped
  int signal = 0;                  // signal that stopped the search or the sweep (which is then empty), or 0
};

struct TuneOptions {
  bool sweep = false;  // measure every number, not only those that the search asks for
  // Unless empty, called with the result before a sweep begins, or at the end without a sweep. If it throws, the study
  // ends.
  std::function<void(const TuneResult&)> found{};
};

// Whether other runs may begin with the answer: other programs had no part in it, or there was nothing to choose.
bool may_be_remembered(const TuneResult& result);

// Fraction by which the chosen numbers have less goodput (or throughput) than the best of the sweep; none if the sweep
// has not measured the chosen numbers.
std::optional<double> regret_of(const TuneResult& result);

// Trains without evaluation until the search has ended; stores nothing. `job` must have bounds (JobOptions::tuned). The
// learning rate is zero; for goodput it is the job's, because the noise scale belongs to weights that learn. `note`
// gets a line for each decision. `context.stop_signal` ends the study after the round.
//
// The search asks for some numbers. Then one learner, the same with fewer threads, the best numbers of the search, or
// with a sweep all numbers, are compared in turns (autotuner/comparison.h), and the windows of the search count, too.
// The answer is the best of all that was measured, or the fewest learners within 3 % of it. Numbers for which there is
// no memory are left out.
TuneResult tune(const JobOptions& job, const RunContext& context, const TuneOptions& options,
                const std::function<void(const std::string&)>& note);

}  // namespace arbalest::jobs
