// Runs a job: epochs, evaluation, stop rule, and the saved model.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "dataflow/input/input_observer.h"
#include "engine/devices.h"
#include "jobs/options/job_options.h"
#include "jobs/run/run_observer.h"

namespace arbalest::jobs {

class LearnerCache;

struct RunContext {
  std::string data_root;                          // where datasets lie
  std::string output_directory;                   // exists and is writable; "" keeps nothing (dry runs, benchmarks)
  std::vector<RunObserver*> observers;            // told in order
  const std::atomic<int>* stop_signal = nullptr;  // not 0: end the round, save, return kStopped
  const LearnerCache* learner_cache = nullptr;    // where `auto {}` begins; null: nothing is remembered
  engine::DeviceOptions device_options;
  dataflow::InputObserver* training_input = nullptr;  // watches it; must outlive the run
  dataflow::InputObserver* evaluation_input = nullptr;
};

// Trains until the target, the last epoch, a stop signal or divergence, and writes model.safetensors. A diverged or
// stopped run returns its summary like any other; other failures throw engine::Error after the observers were told.
RunSummary train(const JobOptions& job, const RunContext& context);

struct DryRun {
  std::string text;                   // a line for the user
  std::vector<std::string> warnings;  // of the job, and what came to light as it ran
};

// One round of training and one evaluation of the whole test set; writes nothing, tells no observer, heeds no stop
// signal. Throws kDiverged if a loss is not finite.
DryRun dry_run(const JobOptions& job, const RunContext& context);

}  // namespace arbalest::jobs
