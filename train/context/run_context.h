// A RunContext gives a run everything besides its job: paths, observers, a clock, and how it is stopped.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "dataflow/input/batches/input_observer.h"
#include "engine/backends/devices.h"
#include "engine/process/world.h"
#include "train/context/run_observer.h"

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
  const std::atomic<int>* save_requests = nullptr;  // rises: save a checkpoint after the iteration under way, and go on
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

}  // namespace arbalest::jobs
