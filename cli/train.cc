// arbalest train JOB
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "checkpoint/kernel_choices_text.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "cli/next_commands.h"
#include "cli/processes.h"
#include "cli/stop_signals.h"
#include "engine/base/error.h"
#include "messages/source_commit.h"
#include "report/console_reporter.h"
#include "report/output_file.h"
#include "report/prometheus/prometheus_file.h"
#include "report/reopen/next_steps.h"
#include "report/reopen/prepared_run.h"
#include "report/run_directory.h"
#include "report/trace.h"
#include "train/divergence/step_settings.h"
#include "train/processes/shared_job.h"
#include "train/processes/shared_results.h"
#include "train/train.h"

namespace arbalest::cli {

namespace {

struct TrainArguments {
  std::string program;  // as the user called it
  JobArguments job;
  std::string output;
  std::string data_root;
  std::string trace;
  std::string prometheus;
  std::string resume = "none";
  std::string kernels;
  bool dry_run = false;
  bool quiet = false;
  bool no_graph = false;
  bool no_cache = false;
};

// All processes must have been started with the same command.
void require_same_arguments(engine::process::World& world, const TrainArguments& arguments) {
  const std::string own = fmt::format("{} {} {} {} {}", arguments.job.path, fmt::join(arguments.job.overrides, " "),
                                      arguments.output, arguments.resume, arguments.dry_run);
  const std::vector<int> others = world.agree(own);
  if (others.empty()) return;
  throw jobs::SharedError(engine::ErrorKind::kUsage,
                          fmt::format("{} was started with other arguments than rank 0: all processes of a run need "
                                      "the same job, --set, --output and --resume",
                                      world.place(others.front())));
}

// Throws kUsage for options that only a run that is kept may have.
void check_dry_run(const TrainArguments& arguments) {
  if (!arguments.output.empty()) {
    engine::fail(engine::ErrorKind::kUsage, "--output and --dry-run cannot be combined: a dry run keeps nothing");
  }
  if (!arguments.trace.empty()) {
    engine::fail(engine::ErrorKind::kUsage, "--trace and --dry-run cannot be combined: a dry run keeps nothing");
  }
  if (!arguments.prometheus.empty()) {
    engine::fail(engine::ErrorKind::kUsage, "--prometheus and --dry-run cannot be combined: a dry run keeps nothing");
  }
  if (!arguments.kernels.empty()) {
    engine::fail(engine::ErrorKind::kUsage, "--kernels and --dry-run cannot be combined: a dry run trains nothing");
  }
  if (arguments.resume != "none") {
    engine::fail(engine::ErrorKind::kUsage, "--resume and --dry-run cannot be combined: a dry run keeps nothing");
  }
}

// Throws kUsage for --trace with a job whose training has no streams of tasks.
void check_sparse(const TrainArguments& arguments) {
  if (!arguments.trace.empty()) {
    engine::fail(engine::ErrorKind::kUsage,
                 "--trace records task streams, which jobs over sparse rows and hogwild on ratings do not have; leave "
                 "--trace out");
  }
}

// A dry run has nothing to save, so signals end it as they end any program.
int dry_run(const TrainArguments& arguments, engine::process::World& world) {
  jobs::together(world, [&] { check_dry_run(arguments); });
  require_same_arguments(world, arguments);
  const jobs::JobOptions job = jobs::load_shared_job(world, arguments.job.path, arguments.job.overrides);
  jobs::RunContext context;
  context.world = &world;
  context.data_root = data_root(arguments.data_root);
  context.device_options.graphs = !arguments.no_graph;
  const jobs::DryRun done = jobs::dry_run(job, context);
  if (world.rank() != 0) return kOk;
  log_warnings(done.warnings);
  warn_of_unused_data_root(job, arguments.data_root, arguments.job.path);
  print_result(fmt::format("{}\n", done.text));
  return kOk;
}

// The observers that --trace and --prometheus ask for. Only rank 0 has them.
struct Monitors {
  std::optional<jobs::Trace> trace;
  std::optional<jobs::PrometheusFile> prometheus;
};

void open_monitors(engine::process::World& world, const TrainArguments& arguments, Monitors& monitors) {
  jobs::together(world, [&] {
    if (world.rank() != 0) return;
    if (!arguments.trace.empty()) jobs::refuse_run_file("--trace", arguments.trace, arguments.output);
    if (!arguments.prometheus.empty()) jobs::refuse_run_file("--prometheus", arguments.prometheus, arguments.output);
    if (!arguments.trace.empty()) monitors.trace.emplace(arguments.trace);
    if (!arguments.prometheus.empty()) monitors.prometheus.emplace(arguments.prometheus);
  });
}

// The trace is called first, because other observers report its results.
void watch(jobs::Trace& trace, jobs::RunContext& context) {
  context.device_options.observer = &trace;
  context.training_input = &trace.training_input();
  context.evaluation_input = &trace.evaluation_input();
  context.observers.insert(context.observers.begin(), &trace);
}

// The next command of the user begins with these.
TrainCommand command_of(const TrainArguments& arguments) {
  TrainCommand command{.program = arguments.program, .job = arguments.job.path, .settings = arguments.job.overrides};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) command.options.insert(command.options.end(), {name, value});
  };
  add("--data-root", arguments.data_root);
  add("--kernels", arguments.kernels);
  add("--prometheus", arguments.prometheus);
  if (arguments.no_graph) command.options.emplace_back("--no-graph");
  if (arguments.no_cache) command.options.emplace_back("--no-cache");
  return command;
}

// Prints what may be done next with the run in `directory`.
void print_next(const TrainArguments& arguments, const engine::process::World& world, const std::string& directory,
                const jobs::NextSteps& steps) {
  if (arguments.quiet) return;
  const std::string commands = next_commands(command_of(arguments), directory, steps);
  if (commands.empty()) return;
  const char* launcher = world.size() > 1 ? " (start the train command with mpirun or srun, as before)" : "";
  print_note(fmt::format("next{}:\n{}", launcher, commands));
}

// Tells the user what may be done next with the run in `directory`, which has ended, and what may help if it diverged.
void advise(const TrainArguments& arguments, const engine::process::World& world, const jobs::JobOptions& job,
            const jobs::RunSummary& summary, const std::string& directory) {
  if (summary.status == jobs::RunStatus::kDiverged) {
    const std::string advice = jobs::advice_about_settings(job, summary, arguments.job.overrides);
    if (!advice.empty()) spdlog::warn("{}", advice);
  }
  print_next(arguments, world, directory, jobs::next_steps(job, summary, directory));
}

// Ends a command that has nothing to train.
int end_completed(const TrainArguments& arguments, const engine::process::World& world, jobs::PreparedRun& run) {
  if (world.rank() != 0) return kOk;
  print_result(run.completed().text + "\n");
  print_next(arguments, world, run.directory().path().string(), jobs::next_steps_of(run.job(), run.completed()));
  return kOk;
}

// Rank 0 chooses for all. Throws kUsage if the file cannot be read, or has no effect because the job asks for the rule.
void take_kernels(const TrainArguments& arguments, const engine::process::World& world, const jobs::JobOptions& job,
                  jobs::RunContext& context) {
  if (arguments.kernels.empty() || world.rank() != 0) return;
  if (job.training.kernels == engine::KernelSelection::kFixed) {
    engine::fail(
        engine::ErrorKind::kUsage,
        "--kernels has no effect on a job with kernels: FIXED, for which a rule chooses; leave out one of them");
  }
  if (!job.devices.front().is_cuda()) spdlog::warn("--kernels has no effect: the job trains on CPUs");
  context.device_options.recorded_kernels = jobs::read_kernel_choices(arguments.kernels);
}

int exit_code_of(const jobs::RunSummary& summary) { return exit_code(summary.status, summary.stop_signal); }

int train(const TrainArguments& arguments, engine::process::World& world) {
  const std::atomic<int>& stop_signal = catch_stop_signals(
      "arbalest: stopped at once; what was not saved yet is lost, and any earlier checkpoints are intact\n");
  world.watch_stop(stop_signal);
  const std::atomic<int>& save_requests = catch_save_requests();
  require_same_arguments(world, arguments);
  const jobs::SourceText source = jobs::read_shared_job_file(world, arguments.job.path);
  const auto read = [&](std::span<const std::string> settings) {
    return jobs::load_shared_job(world, source, settings);
  };
  jobs::JobOptions job = read(arguments.job.overrides);
  if (job.sparse) jobs::together(world, [&] { check_sparse(arguments); });
  if (world.rank() == 0) warn_of_unused_data_root(job, arguments.data_root, arguments.job.path);
  const auto cache = arguments.no_cache ? std::nullopt : learner_cache();
  Monitors monitors;
  open_monitors(world, arguments, monitors);
  jobs::PreparedRun run(std::move(job),
                        {.location = {.output = arguments.output, .resume = arguments.resume},
                         .data_root = data_root(arguments.data_root),
                         .program = fmt::format("{} {}", ARBALEST_VERSION, jobs::source_commit()),
                         .settings = arguments.job.overrides,
                         .read = read,
                         .warn = [](const std::string& text) { spdlog::warn("{}", text); }},
                        world);
  if (!run.completed().text.empty()) return end_completed(arguments, world, run);
  jobs::RunContext& context = run.context();
  context.device_options.graphs = !arguments.no_graph;
  jobs::together(world, [&] { take_kernels(arguments, world, run.job(), context); });
  context.stop_signal = &stop_signal;
  context.save_requests = &save_requests;
  if (cache) context.learner_cache = &*cache;
  if (world.rank() != 0) return exit_code_of(jobs::train(run.job(), context));
  std::optional<jobs::Trace>& trace = monitors.trace;
  jobs::RunDirectory& directory = run.directory();
  spdlog::info("the run is kept in '{}', datasets are looked for in '{}'", directory.path().string(),
               context.data_root);
  jobs::ConsoleOptions console_choices = console_options(arguments.quiet);
  if (trace) console_choices.epoch_note = [&trace] { return trace->epoch_text(); };
  jobs::ConsoleReporter console(console_choices);
  directory.warn_with([&console](const std::string& text) { console.on_warning(text); });
  // The console is called after the directory, because it names files that must exist by then.
  context.observers.push_back(&console);
  if (monitors.prometheus) {
    monitors.prometheus->warn_with([&console](const std::string& text) { console.on_warning(text); });
    context.observers.push_back(&*monitors.prometheus);
  }
  if (trace) {
    watch(*trace, context);
    directory.follow(*trace);
  }
  const jobs::RunSummary summary = jobs::train(run.job(), context);
  if (trace && trace->dropped() > 0) {
    spdlog::warn("'{}' lacks {} spans: it keeps the first {} of each stream", arguments.trace, trace->dropped(),
                 jobs::Trace::kSpansPerTrack);
  }
  advise(arguments, world, run.job(), summary, directory.path().string());
  return exit_code_of(summary);
}

}  // namespace

Command add_train(CLI::App& program, const std::string& name) {
  auto arguments = std::make_shared<TrainArguments>();
  arguments->program = name;
  CLI::App* command = program.add_subcommand("train", "Train the model of a job file and save it");
  command->footer(
      "Examples:\n"
      "  arbalest train configs/lenet-digits.txtpb\n"
      "  arbalest train configs/lenet-mnist.txtpb --set training.batch_size=16 --output runs/small-batch\n"
      "\n"
      "  arbalest train configs/lenet-digits.txtpb --output runs/lenet --resume=auto\n"
      "\n"
      "On Ctrl-C, SIGTERM or a closed terminal the run ends its round and saves the model and a\n"
      "checkpoint. A second Ctrl-C or SIGTERM ends the program at once, without saving. SIGUSR1 saves a\n"
      "checkpoint, and the run goes on. --resume=auto goes on from the newest checkpoint.\n"
      "\n" +
      std::string(kExitCodesHelp));
  add_job_arguments(*command, arguments->job);
  command->add_option("--output", arguments->output, "Directory of the run (default: a new one in runs/)")
      ->type_name("DIR")
      ->check(check_name);
  command
      ->add_option("--resume", arguments->resume,
                   "auto: go on from the newest checkpoint in --output, or begin if there is none; none (default): "
                   "refuse a directory that holds a run; or a checkpoint or run to go on from")
      ->type_name("auto|none|DIR")
      ->check(check_name);
  add_data_root(*command, arguments->data_root);
  command
      ->add_option("--kernels", arguments->kernels,
                   "GPU: take the kernels of another run, from the kernels.txtpb of its directory; a resumed run takes "
                   "its own")
      ->type_name("FILE")
      ->check(check_name);
  command
      ->add_option("--trace", arguments->trace,
                   "Write a timeline of all tasks of this process to this new file, for ui.perfetto.dev, and report "
                   "how busy the devices were")
      ->type_name("FILE")
      ->check(check_name);
  command
      ->add_option("--prometheus", arguments->prometheus,
                   "Keep the present state of the run in this file (*.prom), for the textfile collector of Prometheus' "
                   "node_exporter")
      ->type_name("FILE")
      ->check(check_name);
  command->add_flag("-n,--dry-run", arguments->dry_run,
                    "Train one round, evaluate once, and keep nothing; not with --output, --trace or --prometheus");
  command->add_flag("-q,--quiet", arguments->quiet, "Show no progress");
  command->add_flag("--no-graph", arguments->no_graph,
                    "GPU: do not use CUDA graphs, so that an error names the operator");
  command->add_flag("--no-cache", arguments->no_cache,
                    "With learners { per_device { auto {} } }: ignore what 'arbalest tune' has found before");
  return {command, [arguments] {
            return run_in_processes([&](engine::process::World& world) {
              return arguments->dry_run ? dry_run(*arguments, world) : train(*arguments, world);
            });
          }};
}

}  // namespace arbalest::cli
