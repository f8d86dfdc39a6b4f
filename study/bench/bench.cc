#include "study/bench/bench.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "messages/exit_codes.h"
#include "messages/text.h"
#include "study/child_process.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

std::int64_t now_in_milliseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::vector<std::string> train_arguments(const BenchCase& of, const BenchRun& run, std::optional<double> target,
                                         const BenchContext& context) {
  // A remembered answer of `tune` would be search time outside the clock.
  std::vector<std::string> arguments = {"arbalest", "train", of.job_path, "--no-cache"};
  std::vector<std::string> settings = of.settings;
  if (target) settings.push_back(fmt::format("training.target_accuracy={}", *target));
  settings.push_back(fmt::format("training.seed={}", run.seed));
  for (const std::string& setting : settings) {
    arguments.emplace_back("--set");
    arguments.push_back(setting);
  }
  arguments.insert(arguments.end(), {"--output", (context.directory / run.directory).string()});
  if (context.trace) {
    arguments.insert(arguments.end(), {"--trace", (context.directory / (run.directory + ".trace.json")).string()});
  }
  if (!context.data_root.empty()) arguments.insert(arguments.end(), {"--data-root", context.data_root});
  return arguments;
}

std::string how_it_ended(const ChildEnd& end) {
  if (end.signal == 0) return fmt::format("it ended with exit code {}", end.exit_code);
  return fmt::format("it was ended by {}", signal_name(end.signal));
}

void judge(const ChildEnd& end, const fs::path& directory, bool has_target, BenchRun& run) {
  run.exit_code = end.signal == 0 ? end.exit_code : exit_codes::kSignalBase + end.signal;
  const std::string problem = read_run(directory / run.directory, has_target, run);
  const bool is_clean = end.signal == 0 && (end.exit_code == 0 || end.exit_code == exit_codes::kDiverged);
  if (is_clean && problem.empty() && run.is_measured()) return;
  if (end.was_stopped) {
    run.outcome = BenchOutcome::kStopped;
    return;
  }
  run.outcome = BenchOutcome::kDied;
  run.message = how_it_ended(end);
  if (is_clean) run.message += "; " + problem;
  const std::string last = last_line(directory / run.log);
  if (!last.empty()) run.message += ": " + last;
}

std::string end_text(const BenchRun& run, const BenchContext& context, std::optional<double> target) {
  const std::string accuracy =
      run.best_accuracy() ? fmt::format(", best {}", percent(*run.best_accuracy())) : std::string();
  switch (run.outcome) {
    case BenchOutcome::kReached:
      return fmt::format("reached {} after {}, {:.1f} s", target_percent(target.value_or(0.0)),
                         counted(run.epochs, "epoch"), run.time_to_accuracy_seconds.value_or(0.0));
    case BenchOutcome::kNotReached:
      return fmt::format(
          "{} not yet held after {}{}{}", target_percent(target.value_or(0.0)), counted(run.epochs, "epoch"),
          run.held_accuracy() ? ": " + to_string(*run.held_accuracy(), target.value_or(1.0)) : std::string(), accuracy);
    case BenchOutcome::kCompleted:
      return fmt::format("{} after {}{}", run.final_accuracy() ? percent(*run.final_accuracy()) : "no accuracy",
                         counted(run.epochs, "epoch"), accuracy);
    case BenchOutcome::kDiverged: return fmt::format("diverged after {}{}", counted(run.epochs, "epoch"), accuracy);
    case BenchOutcome::kStopped: return "stopped";
    default: return fmt::format("died: {}; its output is in '{}'", run.message, (context.directory / run.log).string());
  }
}

std::vector<BenchRun> list_runs(const BenchPlan& plan) {
  std::vector<BenchRun> runs;
  for (const std::uint64_t seed : plan.seeds) {
    for (std::size_t index = 0; index < plan.cases.size(); ++index) {
      BenchRun& run = runs.emplace_back();
      run.case_index = index;
      run.seed = seed;
    }
  }
  return runs;
}

LoadAverage load_average() {
  LoadAverage load(3);
  const int known = getloadavg(load.data(), static_cast<int>(load.size()));
  load.resize(static_cast<std::size_t>(std::max(known, 0)));
  return load;
}

void keep(const BenchContext& context, const BenchResult& result, const BenchRun& run) {
  if (!context.keep) return;
  try {
    context.keep(result, run);
  } catch (const std::exception& error) {  // there may be space again when the bench ends
    context.note(fmt::format("what has been measured so far cannot be kept: {}", error.what()));
  }
}

}  // namespace

int BenchResult::ended() const {
  return static_cast<int>(std::ranges::count_if(runs, [](const BenchRun& run) { return !run.directory.empty(); }));
}

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

BenchResult begin_bench(const BenchPlan& plan, const BenchContext& context) {
  return {.plan = plan,
          .command = context.command,
          .machine = context.machine,
          .started = time_text(),
          .traced = context.trace,
          .signal = 0,
          .runs = list_runs(plan),
          .load_at_begin = load_average(),
          .load_at_end = {},
          .resumptions = {}};
}

void run_bench(BenchResult& result, const BenchContext& context) {
  const BenchPlan& plan = result.plan;
  for (std::size_t i = 0; i < result.runs.size() && *context.stop_signal == 0; ++i) {
    BenchRun& run = result.runs[i];
    if (run.is_measured()) continue;
    const BenchCase& of = plan.cases[run.case_index];
    run.directory = fmt::format("{}/seed-{}", of.directory, run.seed);
    run.log = run.directory + ".log";
    run.start_milliseconds = now_in_milliseconds();
    const std::string name = fmt::format("run {} of {}: {}, seed {}", i + 1, result.runs.size(), of.label, run.seed);
    context.note(name);
    ProcessorWatch processor;
    try {
      fs::create_directories(context.directory / of.directory);
      const ChildEnd end = run_child({.program = context.program,
                                      .arguments = train_arguments(of, run, plan.target, context),
                                      .environment = context.environment,
                                      .log = context.directory / run.log,
                                      .watch = [&](pid_t process) { processor.look(process); }},
                                     *context.stop_signal);
      judge(end, context.directory, plan.target.has_value(), run);
      run.processor = processor.whole(end.processor_seconds);
    } catch (const std::exception& error) {  // must not lose the results of the other runs
      run.outcome = BenchOutcome::kDied;
      run.message = error.what();
    }
    context.note(fmt::format("{}: {}", name, end_text(run, context, plan.target)));
    result.load_at_end = load_average();
    keep(context, result, run);
  }
  result.signal = *context.stop_signal;
}

}  // namespace arbalest::jobs
