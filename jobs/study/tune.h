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

struct TuneOptions {
  bool sweep = false;  // measure every number, too, not only those that the search asks for
};

// A number of learners of each device, as measured.
struct TunePoint {
  int learners = 1;
  int threads = 1;  // of each; 1 on a GPU
  double images_per_second = 0.0;
  double error = 0.0;              // relative standard error
  std::int64_t learner_bytes = 0;  // what all learners of all devices take of memory
};

struct TuneResult {
  std::string job;
  std::vector<std::string> devices;
  std::int64_t batch_size = 0;
  std::string precision;
  std::vector<int> chosen;  // learners by device
  std::string reason;       // one sentence
  double images_per_second = 0.0;
  int probes = 0;
  double seconds = 0.0;            // that the search took
  std::vector<TunePoint> points;   // of the search, ascending; of the last kind of device that was searched
  std::vector<TunePoint> sweep;    // of all numbers, in turns; empty unless asked for
  std::optional<double> regret{};  // of the sweep: by what part the chosen number is slower than the best
};

// Trains without evaluation until the search has ended; keeps nothing. `job` has bounds (JobOptions::tuned). `tell`
// gets a line for each decision.
TuneResult tune(const JobOptions& job, const RunContext& context, const TuneOptions& options,
                const std::function<void(const std::string&)>& tell);

}  // namespace arbalest::jobs
