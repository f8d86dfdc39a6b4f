// arbalest bench JOB...
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "cli/machine_report.h"
#include "cli/stop_signals.h"
#include "engine/base/error.h"
#include "report/output_directory.h"
#include "study/bench/bench.h"
#include "study/bench/bench_report.h"
#include "study/bench/bench_resume.h"

namespace arbalest::cli {

namespace {

struct BenchArguments {
  jobs::BenchRequest request{
      .jobs = {}, .settings = {}, .variations = {}, .seeds = "1..5", .target = {}, .no_target = false};
  std::string output;
  bool resume = false;
  std::string data_root;
  bool trace = false;
  bool json = false;
};

// The command as one would type it in a shell.
std::string command_line(const BenchArguments& arguments) {
  const auto quoted = [](const std::string& word) {
    constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:@+";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
  };
  std::string command = "arbalest bench";
  for (const std::string& job : arguments.request.jobs) command += " " + quoted(job);
  for (const std::string& setting : arguments.request.settings) command += " --set " + quoted(setting);
  for (const std::string& variation : arguments.request.variations) command += " --vary " + quoted(variation);
  if (arguments.request.target) command += fmt::format(" --target {}", *arguments.request.target);
  if (arguments.request.no_target) command += " --no-target";
  if (arguments.trace) command += " --trace";
  command += " --seeds " + quoted(arguments.request.seeds);
  return command;
}

// The first that applies: stopped, a run that died (with its own code), target not reached in all runs, a run that
// diverged.
int exit_code(const jobs::BenchResult& result) {
  if (result.signal != 0) return kSignalBase + result.signal;
  int code = kOk;
  for (const jobs::BenchRun& run : result.runs) {
    if (run.outcome == jobs::BenchOutcome::kDied) {
      const bool has_code = run.exit_code > kOk && run.exit_code < kSignalBase;
      return has_code ? run.exit_code : kInternalError;
    }
    if (result.plan.target && run.outcome != jobs::BenchOutcome::kReached) code = kTargetNotReached;
    if (!result.plan.target && run.outcome == jobs::BenchOutcome::kDiverged) code = kDiverged;
  }
  return code;
}

void print(const jobs::BenchResult& result, const BenchArguments& arguments) {
  if (arguments.json) {
    print_data(jobs::to_json(result).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else {
    print_result(jobs::to_text(result));
  }
}

// Writes again what was written run by run: some of it may be missing.
void write_all(const jobs::BenchResult& result, const std::filesystem::path& directory) {
  jobs::write_bench(result, directory);
  for (const jobs::BenchRun& run : result.runs) {
    if (!run.directory.empty()) jobs::write_mllog(result, run, directory);
  }
}

void check(const BenchArguments& arguments) {
  if (arguments.resume && arguments.output.empty()) {
    engine::fail(engine::ErrorKind::kUsage, "--resume needs the directory of the bench: name it with --output");
  }
  if (arguments.request.no_target && arguments.request.target) {
    engine::fail(engine::ErrorKind::kUsage, "--target and --no-target cannot be combined: give one of them");
  }
}

// Files of another bench are never touched, unless it is to be resumed.
void check_directory(const jobs::OutputDirectory& directory, bool resume) {
  if (directory.is_new() || resume) return;
  engine::fail(engine::ErrorKind::kUsage,
               "'{}' is there already; choose another directory with --output, or go on with its bench with --resume",
               directory.path().string());
}

int bench(const BenchArguments& arguments) {
  check(arguments);
  const std::atomic<int>& stop_signal =
      catch_stop_signals("arbalest: stopped at once; the runs that have ended are kept\n");
  const jobs::BenchPlan plan = jobs::plan_bench(arguments.request);
  log_warnings(plan.warnings);
  const jobs::OutputDirectory directory(arguments.output, "bench-" + plan.cases.front().job);
  check_directory(directory, arguments.resume);
  jobs::BenchContext context;
  context.directory = directory.path();
  // The path of the running program may meanwhile lead to a newer build; this link leads to the running one.
  context.program = "/proc/self/exe";
  context.environment = environ;
  context.data_root = data_root(arguments.data_root);
  context.stop_signal = &stop_signal;
  context.trace = arguments.trace;
  context.note = [](const std::string& line) { print_note(fmt::format("{}\n", line)); };
  context.command = command_line(arguments);
  context.machine = environment_report();
  context.keep = [&](const jobs::BenchResult& so_far, const jobs::BenchRun& run) {
    jobs::write_bench(so_far, context.directory);
    jobs::write_mllog(so_far, run, context.directory);
  };
  jobs::holds_bench(context.directory);  // throws for a directory that holds something else, before anything is written
  const jobs::BenchLock lock(context.directory);
  const bool resumes = jobs::holds_bench(context.directory);
  jobs::BenchResult result = resumes ? jobs::resume_bench(plan, context) : jobs::begin_bench(plan, context);
  print_note(jobs::resumption_notes(result));
  jobs::write_bench(result, context.directory);  // so that the bench can be resumed from the first run on
  jobs::run_bench(result, context);
  print(result, arguments);  // first, so that a full disk does not lose it
  write_all(result, context.directory);
  print_note(fmt::format("{}kept in '{}': {}, {}, {}\n",
                         result.signal == 0 ? "" : "stopped; what has been measured is ", context.directory.string(),
                         jobs::kBenchPage, jobs::kBenchMarkdown, jobs::kBenchJson));
  return exit_code(result);
}

}  // namespace

Command add_bench(CLI::App& program) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command =
      program.add_subcommand("bench", "Compare accuracies and times to a target accuracy, over seeds and variations");
  command->footer(
      "Examples:\n"
      "  arbalest bench configs/lenet-mnist.txtpb --target 0.99 --seeds 1..5\n"
      "  arbalest bench configs/lenet-mnist.txtpb --target 0.99 --vary training.batch_size=16,32,64 \\\n"
      "      --vary learners.per_device.fixed=1,2,4                       every combination\n"
      "  arbalest bench A.txtpb B.txtpb --target 0.99                     one job beside another\n"
      "  arbalest bench configs/resnet20-cifar10.txtpb --no-target --seeds 1..3 --output runs/schemes --resume \\\n"
      "      --vary synchronization=sma,sma{period:4} --vary learners.per_device.fixed=4,16\n"
      "                                                                   accuracies, by scheme and learners\n"
      "\n"
      "Every run is a separate process, `arbalest train` with one seed; runs follow one another, and the\n"
      "jobs take turns. The clock covers preparation, training and evaluation. The target is reached when\n"
      "the lower median of the last five test accuracies is at least the target (with a validation set: of\n"
      "the last five validation accuracies). A run that does not reach the target counts as slower than all\n"
      "that do. Without a target every run trains all its epochs, and accuracies are compared. Results are\n"
      "written after every run. Ctrl-C stops the current run; a second Ctrl-C ends the run and the bench at\n"
      "once. The same command with --resume continues: finished runs are kept, and runs that failed or were\n"
      "stopped run again.\n"
      "\n" +
      std::string(kExitCodesHelp));
  command->add_option("JOB", arguments->request.jobs, "Job files (*.txtpb)")->required()->check(check_name);
  add_settings(*command, arguments->request.settings);
  command
      ->add_option("--vary", arguments->request.variations,
                   "Run the jobs with each of these values of a field; repeatable: every combination")
      ->type_name("PATH=VALUE,VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--seeds", arguments->request.seeds, "Seeds, such as 1..5 or 1,2,7 (default: 1..5)")
      ->type_name("SEEDS");
  command->add_option("--target", arguments->request.target, "Accuracy to reach, such as 0.99 (default: the jobs' own)")
      ->type_name("ACCURACY");
  command->add_flag("--no-target", arguments->request.no_target, "Train all epochs, whatever target the jobs have");
  command
      ->add_option("--output", arguments->output,
                   "New directory for bench.html, bench.md, bench.json and the runs (default: one in runs/)")
      ->type_name("DIR")
      ->check(check_name);
  command->add_flag("--resume", arguments->resume, "Continue the bench in the --output directory, if there is one");
  add_data_root(*command, arguments->data_root);
  command->add_flag("--trace", arguments->trace, "Trace every run, and report how busy the learners were");
  command->add_flag("--json", arguments->json, "Print JSON");
  return {command, [arguments] { return bench(*arguments); }};
}

}  // namespace arbalest::cli
