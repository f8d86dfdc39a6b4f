// Measures accuracy and time to accuracy: trains every job of a plan once per seed, each time in a process of its own.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "study/bench/bench_plan.h"
#include "study/bench/bench_run.h"

namespace arbalest::jobs {

// Mean numbers of runnable processes over 1, 5 and 15 minutes; empty if the system does not report them.
using LoadAverage = std::vector<double>;

// A later call that resumed the bench.
struct BenchResumption {
  std::string started;               // as BenchResult::started
  int runs_kept = 0;                 // runs that had ended before
  std::vector<std::string> changed;  // fields of the machine's report whose values had changed
};

struct BenchResult {
  BenchPlan plan;
  std::string command;
  nlohmann::ordered_json machine;
  std::string started;         // "2025-01-31T14:25:30Z"
  bool traced = false;         // whether every run is traced
  int signal = 0;              // signal that stopped the bench, or 0
  std::vector<BenchRun> runs;  // all planned runs, in the order in which they run
  LoadAverage load_at_begin;   // before the first run
  LoadAverage load_at_end;     // after the last run that has ended; includes that run's own load
  std::vector<BenchResumption> resumptions;

  // Number of runs that have ended, whatever their outcome.
  int ended() const;
};

struct BenchContext {
  std::string program;                 // path of a program that understands `train JOB --set ... --output DIR`
  char* const* environment = nullptr;  // environment of its processes
  std::string data_root;               // "": the program finds the data itself
  std::filesystem::path directory;     // exists; holds nothing, or the files of the bench to resume
  bool trace = false;                  // trace every run
  const std::atomic<int>* stop_signal = nullptr;
  std::function<void(const std::string&)> note;  // gets a line when a run begins or ends
  // Unless empty, called with the bench's present state after each run. If it throws, `note` gets the error and the
  // bench continues.
  std::function<void(const BenchResult&, const BenchRun&)> keep;
  std::string command;             // as the user typed it, for the report
  nlohmann::ordered_json machine;  // description of program and machine, for the report
};

// Returns a bench of which no run has begun.
BenchResult begin_bench(const BenchPlan& plan, const BenchContext& context);

// Runs everything that has not been measured yet, one run after another. For each seed the cases take turns, so that
// disturbances of the machine affect all of them. If a run dies, or its process or log cannot be created, the others
// continue. A stop signal is passed on to the run under way, and no other begins.
void run_bench(BenchResult& result, const BenchContext& context);

// The present time: "2025-01-31T14:25:30Z".
std::string time_text();

}  // namespace arbalest::jobs
