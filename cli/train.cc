// arbalest train JOB
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/command.h"
#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "cli/stop_signals.h"
#include "engine/error.h"
#include "jobs/report/console_reporter.h"
#include "jobs/report/run_directory.h"
#include "jobs/report/trace.h"
#include "jobs/run/trainer.h"

namespace arbalest::cli {

namespace {

struct TrainArguments {
  JobArguments job;
  std::string output;
  std::string data_root;
  std::string trace;
  bool dry_run = false;
  bool quiet = false;
  bool no_graph = false;
  bool no_cache = false;
};

// A dry run has nothing to save, so signals end it as they end any program.
int dry_run(const TrainArguments& arguments) {
  if (!arguments.output.empty()) {
    engine::fail(engine::ErrorKind::kUsage, "--output and --dry-run cannot stand together: a dry run keeps nothing");
  }
  if (!arguments.trace.empty()) {
    engine::fail(engine::ErrorKind::kUsage, "--trace and --dry-run cannot stand together: a dry run keeps nothing");
  }
  const jobs::JobOptions job = load(arguments.job);
  jobs::RunContext context;
  context.data_root = data_root(arguments.data_root);
  context.device_options.graphs = !arguments.no_graph;
  const jobs::DryRun done = jobs::dry_run(job, context);
  log_warnings(done.warnings);
  fmt::print("{}\n", done.text);
  return kOk;
}

// The trace is called first, because other observers report its results.
void watch(jobs::Trace& trace, jobs::RunContext& context) {
  context.device_options.observer = &trace;
  context.training_input = &trace.training_input();
  context.evaluation_input = &trace.evaluation_input();
  context.observers.insert(context.observers.begin(), &trace);
}

int train(const TrainArguments& arguments) {
  const std::atomic<int>& stop_signal = catch_stop_signals();
  const jobs::JobOptions job = load(arguments.job);
  jobs::RunContext context;
  context.data_root = data_root(arguments.data_root);
  context.device_options.graphs = !arguments.no_graph;
  context.stop_signal = &stop_signal;
  const auto cache = arguments.no_cache ? std::nullopt : learner_cache();
  if (cache) context.learner_cache = &*cache;
  std::optional<jobs::Trace> trace;
  if (!arguments.trace.empty()) trace.emplace(arguments.trace);
  jobs::RunDirectory directory(arguments.output, job.name);
  spdlog::info("the run is kept in '{}', datasets are looked for in '{}'", directory.path().string(),
               context.data_root);
  jobs::ConsoleOptions console_choices = console_options(arguments.quiet);
  if (trace) console_choices.epoch_note = [&trace] { return trace->epoch_text(); };
  jobs::ConsoleReporter console(console_choices);
  context.output_directory = directory.path().string();
  // The console is called last, because it names files that must exist by then.
  context.observers = {&directory, &console};
  if (trace) {
    watch(*trace, context);
    directory.follow(*trace);
  }
  const jobs::RunSummary summary = jobs::train(job, context);
  if (trace && trace->dropped() > 0) {
    spdlog::warn("'{}' lacks {} spans: of each stream it has the first {}", arguments.trace, trace->dropped(),
                 jobs::Trace::kSpansPerTrack);
  }
  return exit_code(summary.status, stop_signal.load());
}

}  // namespace

Command add_train(CLI::App& program) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = program.add_subcommand("train", "Train the model of a job file and save it");
  command->footer(
      "Examples:\n"
      "  arbalest train configs/lenet-digits.txtpb\n"
      "  arbalest train configs/lenet-mnist.txtpb --set training.batch_size=16 --output runs/small-batch\n"
      "\n"
      "Ctrl-C, SIGTERM and a closed terminal end the round and save the model; a second Ctrl-C or\n"
      "SIGTERM ends the program at once.\n"
      "\n" +
      std::string(kExitCodesHelp));
  add_job_arguments(*command, arguments->job);
  command->add_option("--output", arguments->output, "Directory of the run; else a new one below runs/")
      ->type_name("DIR")
      ->check(check_name);
  add_data_root(*command, arguments->data_root);
  command
      ->add_option("--trace", arguments->trace,
                   "New file for what ran when, for ui.perfetto.dev; each epoch then tells how busy the devices were")
      ->type_name("FILE")
      ->check(check_name);
  command->add_flag("-n,--dry-run", arguments->dry_run,
                    "Run one step of each phase, and keep nothing; not with --output or --trace");
  command->add_flag("-q,--quiet", arguments->quiet, "Show no progress");
  command->add_flag("--no-graph", arguments->no_graph,
                    "GPU: run operator by operator and not as CUDA graphs, so that an error names the operator");
  command->add_flag("--no-cache", arguments->no_cache,
                    "With learners { per_device { auto {} } }: do not begin where 'arbalest tune' has ended");
  return {command, [arguments] { return arguments->dry_run ? dry_run(*arguments) : train(*arguments); }};
}

}  // namespace arbalest::cli
