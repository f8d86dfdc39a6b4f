// arbalest tune JOB
#include <filesystem>
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
#include "engine/base/error.h"
#include "options/sparse/graph_needed.h"
#include "report/output_directory.h"
#include "saved_model/atomic_file.h"
#include "study/accuracy_report.h"
#include "study/bench/bench_plan.h"
#include "study/seed_list.h"
#include "study/tune_report.h"
#include "train/session/settled_precision.h"

namespace arbalest::cli {

namespace {

constexpr const char* kThroughput = "throughput";
constexpr const char* kGoodput = "goodput";
constexpr const char* kTimeToAccuracy = "time-to-accuracy";
constexpr const char* kJson = "tune.json";
constexpr const char* kPicture = "tune.svg";

struct TuneArguments {
  JobArguments job;
  std::string objective;  // "": the job's own
  std::optional<double> target;
  std::string seeds;  // "": the job's own
  std::string output;
  std::string data_root;
  bool sweep = false;
  bool no_cache = false;
  bool json = false;
};

// Settings that leave out the learners of switches: while their number before a switch is searched, there is none that
// they could be fewer than.
std::vector<std::string> without_switch_learners(const jobs::JobOptions& job) {
  std::vector<std::string> settings;
  for (std::size_t i = 0; i < job.switches.size(); ++i) {
    if (job.switches[i].learners_per_device.empty()) continue;
    settings.push_back(fmt::format("synchronization.switch[{}].learners=default", i));
  }
  return settings;
}

jobs::JobOptions load_with_bounds(JobArguments arguments, const std::string& objective) {
  jobs::JobOptions job = load(arguments);
  jobs::require_replicas(job, "arbalest tune");
  const std::size_t given = arguments.overrides.size();
  std::vector<std::string> left_out;
  if (!job.tuned) {
    arguments.overrides.push_back("learners.per_device.auto={}");
    left_out = without_switch_learners(job);
    arguments.overrides.insert(arguments.overrides.end(), left_out.begin(), left_out.end());
  }
  if (objective == kThroughput) arguments.overrides.push_back("learners.per_device.auto.objective=THROUGHPUT");
  if (objective == kGoodput) arguments.overrides.push_back("learners.per_device.auto.objective=GOODPUT");
  if (arguments.overrides.size() == given) return job;
  job = load(arguments);
  if (!left_out.empty()) job.warnings.push_back("tune ignores the field 'learners' of the job's switches");
  return job;
}

// Refuses to overwrite the files of another tune. Called before anything is measured.
void check_is_free(const std::filesystem::path& directory) {
  for (const char* file : {kJson, kPicture}) {
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::symlink_status(directory / file, error))) {
      engine::fail(engine::ErrorKind::kUsage, "'{}' is there already; choose another directory with --output",
                   (directory / file).string());
    }
  }
}

// `found`: an AccuracyStudy or a TuneResult.
std::string json_of(const auto& found) { return jobs::to_json(found).dump(2) + "\n"; }

void print(const auto& found, const TuneArguments& arguments) {
  if (arguments.json) {
    print_data(json_of(found));
  } else {
    print_result(jobs::to_text(found));
  }
}

void save(const auto& found, const std::filesystem::path& directory) {
  jobs::write_file(directory / kJson, json_of(found));
  jobs::write_file(directory / kPicture, jobs::to_svg(found));
}

// Caches the result for later runs with `auto {}`, unless other programs disturbed the measurement. Failures are only
// warnings, because the answer is useful without the cache.
void remember(const jobs::JobOptions& job, const jobs::TuneResult& result) {
  if (!jobs::may_be_remembered(result)) {
    spdlog::warn("the machine was busy, so the result is not cached for runs with 'auto {}'");
    return;
  }
  const auto cache = learner_cache();
  if (!cache) {
    spdlog::warn("the result is not cached for runs with 'auto {}': neither XDG_CACHE_HOME nor HOME names a directory");
    return;
  }
  try {
    cache->remember(job, result.chosen, result.images_per_second);
    print_note(fmt::format("cached in '{}' for runs with learners {{ per_device {{ auto {{}} }} }}\n",
                           cache->file_of(job).string()));
  } catch (const engine::Error& error) {
    spdlog::warn("the result is not cached for runs with 'auto {{}}': {}", error.what());
  }
}

void note(const std::string& line) { print_note(fmt::format("{}\n", line)); }

// The value of --target, or the job's own target.
double target_of(const TuneArguments& arguments, const jobs::JobOptions& job) {
  const std::optional<double> target = arguments.target ? arguments.target : job.training.target_accuracy;
  if (job.data.input.predicts_numbers()) {
    engine::fail(engine::ErrorKind::kUsage,
                 "--objective {} is for classifiers: a model that predicts numbers has no accuracy", kTimeToAccuracy);
  }
  if (!target) {
    engine::fail(engine::ErrorKind::kUsage,
                 "--objective {} needs an accuracy: --target 0.99, or training.target_accuracy in the job",
                 kTimeToAccuracy);
  }
  jobs::check_target(*target);
  return *target;
}

void print_where(const std::filesystem::path& directory) {
  print_note(fmt::format("kept in '{}': {}, {}\n", directory.string(), kJson, kPicture));
}

int tune_accuracy(const TuneArguments& arguments, const jobs::JobOptions& read, jobs::RunContext context) {
  jobs::AccuracyStudyOptions options{.target = target_of(arguments, read), .every_count = arguments.sweep};
  if (!arguments.seeds.empty()) options.seeds = jobs::parse_seeds(arguments.seeds);
  const jobs::OutputDirectory directory(arguments.output, "tune-" + read.name);
  check_is_free(directory.path());
  context.stop_signal = &catch_stop_signals("arbalest: stopped at once; nothing more is kept\n");
  const jobs::JobOptions job = jobs::with_settled_precision(read, context.device_options, note);
  const jobs::AccuracyStudy study = jobs::study_accuracy(job, context, options, note);
  print(study, arguments);  // first, so that a full disk does not lose it
  save(study, directory.path());
  print_where(directory.path());
  if (study.signal != 0) return kSignalBase + study.signal;
  return study.reached ? kOk : kTargetNotReached;
}

int tune_throughput(const TuneArguments& arguments, const jobs::JobOptions& read, jobs::RunContext context) {
  if (arguments.target) {
    engine::fail(engine::ErrorKind::kUsage, "--target is for --objective {}", kTimeToAccuracy);
  }
  if (!arguments.seeds.empty()) {
    engine::fail(engine::ErrorKind::kUsage, "--seeds is for --objective {}", kTimeToAccuracy);
  }
  const jobs::OutputDirectory directory(arguments.output, "tune-" + read.name);
  check_is_free(directory.path());
  context.stop_signal = &catch_stop_signals("arbalest: stopped at once; nothing more is kept\n");
  const jobs::JobOptions job = jobs::with_settled_precision(read, context.device_options, note);
  std::optional<jobs::TuneResult> found;
  const auto keep = [&](const jobs::TuneResult& result) {
    const bool is_remembered = found && found->chosen == result.chosen && jobs::may_be_remembered(*found);
    found = result;
    if (!arguments.no_cache && !is_remembered) remember(job, result);
    save(result, directory.path());
  };
  try {
    const jobs::TuneResult result = jobs::tune(job, context, {.sweep = arguments.sweep, .found = keep}, note);
    if (arguments.sweep && !result.sweep.empty()) keep(result);  // the sweep may have chosen anew
    found = result;
  } catch (...) {
    if (found) print(*found, arguments);  // the sweep or the disk has failed, but the search has not
    throw;
  }
  if (found->chosen.empty()) {
    note("stopped before a number was found; nothing is kept");
    return kSignalBase + found->signal;
  }
  print(*found, arguments);
  if (arguments.sweep && found->sweep.empty()) save(*found, directory.path());
  print_where(directory.path());
  return found->signal == 0 ? kOk : kSignalBase + found->signal;
}

int tune(const TuneArguments& arguments) {
  const jobs::JobOptions job = load_with_bounds(arguments.job, arguments.objective);
  log_warnings(job.warnings);
  warn_of_unused_data_root(job, arguments.data_root, arguments.job.path);
  jobs::RunContext context;
  context.data_root = data_root(arguments.data_root);
  return arguments.objective == kTimeToAccuracy ? tune_accuracy(arguments, job, context)
                                                : tune_throughput(arguments, job, context);
}

}  // namespace

Command add_tune(CLI::App& program) {
  auto arguments = std::make_shared<TuneArguments>();
  CLI::App* command =
      program.add_subcommand("tune", "Find how many learners per device train a job fastest; keeps no model");
  command->footer(
      "Examples:\n"
      "  arbalest tune configs/lenet-mnist.txtpb\n"
      "  arbalest tune configs/lenet-mnist.txtpb --sweep --output tuning   # tuning/tune.json and tune.svg\n"
      "  arbalest tune configs/lenet-mnist.txtpb --objective time-to-accuracy --target 0.99 --seeds 1..3\n"
      "\n"
      "Measurements in which other programs take more than 5 % of the wanted processor time are repeated.\n"
      "If the machine does not become quiet, the result says so and compares images per second of processor\n"
      "time.\n"
      "\n"
      "On Ctrl-C a time-to-accuracy study keeps the numbers of learners that are finished, a throughput\n"
      "search keeps nothing, and a sweep keeps the result of its search.\n"
      "\n"
      "Write the result into the job: learners { per_device { fixed: 4 } }. A job with\n"
      "learners { per_device { auto {} } } searches while it trains. Its search starts at the result of an\n"
      "earlier tune with the same model, data, mini-batch size, precision, devices and version of\n"
      "Arbalest. These results are stored in arbalest/learners/ below $XDG_CACHE_HOME (default: ~/.cache);\n"
      "results of time-to-accuracy studies and of a busy machine are not stored.\n"
      "\n" +
      std::string(kExitCodesHelp));
  add_job_arguments(*command, arguments->job);
  command
      ->add_option("--output", arguments->output, "Directory for tune.json and tune.svg (default: a new one in runs/)")
      ->type_name("DIR")
      ->check(check_name);
  add_data_root(*command, arguments->data_root);
  command
      ->add_option(
          "--objective", arguments->objective,
          "throughput: examples/s. goodput: examples/s times their statistical efficiency. time-to-accuracy: "
          "trains with 1, 2, 4 ... learners and compares the time to --target (default: the objective of the job's "
          "auto {}, or throughput)")
      ->check(CLI::IsMember({kThroughput, kGoodput, kTimeToAccuracy}))
      ->type_name("WHAT");
  command
      ->add_option("--target", arguments->target, "Accuracy in (0, 1] (default: training.target_accuracy of the job)")
      ->type_name("A");
  command
      ->add_option(
          "--seeds", arguments->seeds,
          "With time-to-accuracy: train with each of these seeds, such as 1..3 or 1,2,7, and choose a number "
          "only if its range of times does not overlap with that of any other number (default: the job's seed)")
      ->type_name("LIST");
  command->add_flag(
      "--sweep", arguments->sweep,
      "Also measure every number of learners, and print how much slower the chosen one is than the best. With "
      "time-to-accuracy: train with every number instead of 1, 2, 4 ...");
  command->add_flag("--no-cache", arguments->no_cache, "Do not store the result for later runs with auto {}");
  command->add_flag("--json", arguments->json, "Print JSON");
  return {command, [arguments] { return tune(*arguments); }};
}

}  // namespace arbalest::cli
