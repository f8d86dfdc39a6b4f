// Runs a job: epochs, evaluation, stop rule, and the saved model.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "dataflow/input/batches/input_observer.h"
#include "engine/devices.h"
#include "engine/process/world.h"
#include "jobs/options/job_options.h"
#include "jobs/run/run_observer.h"

namespace arbalest::jobs {

// A value of RunContext::stop_signal: no signal but the code that called train() asks the run to stop. The C library
// keeps the signal of this number for itself, so no process gets it.
inline constexpr int kStopOfCaller = 32;

class LearnerCache;
struct SavedRun;

struct RunContext {
  std::string data_root;         // root directory of the datasets
  std::string output_directory;  // exists and is writable; "": nothing is stored (dry runs, benchmarks)
  SavedRun* resumed = nullptr;   // the run goes on from here, and frees its vectors then; null: it begins
  std::string resumed_path;      // of the checkpoint
  // Length of the run's log, which goes into a checkpoint; unset: there is no log.
  std::function<std::uint64_t()> log_bytes;
  std::string program;                              // version and commit, for checkpoints
  std::vector<RunObserver*> observers;              // called in this order
  const std::atomic<int>* stop_signal = nullptr;    // not 0: end the round, save, return kStopped
  const std::atomic<int>* save_requests = nullptr;  // rises: save a checkpoint after the stride under way, and go on
  const LearnerCache* learner_cache = nullptr;  // start of the search of `auto {}`; null: no earlier answers are used
  engine::DeviceOptions device_options;
  // The processes of the run; null: this one alone. All get the same job, and rank 0 alone has observers and writes.
  engine::process::World* world = nullptr;
  dataflow::InputObserver* training_input = nullptr;  // observes the training input; must outlive the run
  dataflow::InputObserver* evaluation_input = nullptr;
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;  // the run's clock
  // Whether `auto {}` repeats windows that other programs have disturbed. False if `now` is not the machine's clock.
  bool measures_processor_time = true;
};

// Trains until the target, the last epoch, a stop signal or divergence, and writes model.safetensors, and checkpoints
// if there is an output directory. A diverged or stopped run returns its summary like any other. Other failures are
// reported to the observers and then thrown as engine::Error.
RunSummary train(const JobOptions& job, const RunContext& context);

struct DryRun {
  std::string text;                   // one line for the user
  std::vector<std::string> warnings;  // of the job, and from running it
};

// Runs one round of training and one evaluation of the whole test set. Writes nothing, calls no observer, ignores stop
// signals. Throws kDiverged if a loss is not finite.
DryRun dry_run(const JobOptions& job, const RunContext& context);

}  // namespace arbalest::jobs
