// Accuracy and the time to it, measured: every job of a plan trained once per seed, each time in a process of its own.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "jobs/study/bench_plan.h"
#include "jobs/study/bench_run.h"

namespace arbalest::jobs {

// Means over 1, 5 and 15 minutes of the processes that run or want to; empty where the system does not say.
using LoadAverage = std::vector<double>;

// A later call that has gone on with a bench.
struct BenchResumption {
  std::string started;               // as BenchResult::started
  int runs_kept = 0;                 // that had ended before
  std::vector<std::string> changed;  // fields of the machine's report that had another value before
};

struct BenchResult {
  BenchPlan plan;
  std::string command;
  nlohmann::ordered_json machine;
  std::string started;         // "2025-01-31T14:25:30Z"
  bool traced = false;         // every run
  int signal = 0;              // that stopped the bench, or 0
  std::vector<BenchRun> runs;  // all that were planned, in the order in which they ran or would have
  LoadAverage load_at_begin;   // before the first run
  LoadAverage load_at_end;     // after the last that has ended, with what it left of its own
  std::vector<BenchResumption> resumptions;

  // Runs that have ended, whatever came of them.
  int ended() const;
};

struct BenchContext {
  std::string program;                 // path of a program that understands `train JOB --set ... --output DIR`
  char* const* environment = nullptr;  // of its processes
  std::string data_root;               // "": as the program itself finds it
  std::filesystem::path directory;     // exists; holds nothing but what the bench to go on with has left
  bool trace = false;                  // every run
  const std::atomic<int>* stop_signal = nullptr;
  std::function<void(const std::string&)> tell;  // gets a line when a run begins or ends
  // Unless empty: gets the bench as it stands when a run has ended. What it throws is told, and ends nothing.
  std::function<void(const BenchResult&, const BenchRun&)> keep;
  std::string command;             // as the user has given it, for the report
  nlohmann::ordered_json machine;  // what the program and the machine are, for the report
};

// A bench of which no run has begun.
BenchResult begin_bench(const BenchPlan& plan, const BenchContext& context);

// Runs what has not been measured yet, one run after another, the cases in turn for each seed, so that what disturbs
// the machine disturbs all of them. A run that dies, or whose process or log there cannot be, does not end the others.
// On a stop signal the run under way gets it, and no other begins.
void run_bench(BenchResult& result, const BenchContext& context);

// "2025-01-31T14:25:30Z"
std::string time_text();

}  // namespace arbalest::jobs
