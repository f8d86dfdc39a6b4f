// arbalest evaluate RUN
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "checkpoint/kernel_choices_text.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "cli/model/chosen_model.h"
#include "messages/text.h"
#include "options/loading/evaluation_job.h"
#include "report/class_report.h"
#include "report/json.h"
#include "saved_model/run_files.h"
#include "train/train.h"

namespace arbalest::cli {

namespace {

struct EvaluateArguments {
  RunArguments run;
  std::string data_root;
  std::string split = "test";
  bool per_class = false;
  bool json = false;
};

// The directory of the run; a checkpoint lies in RUN/checkpoints.
std::filesystem::path run_directory_of(const EvaluateArguments& arguments) {
  const std::filesystem::path run = arguments.run.run;
  return is_checkpoint(arguments.run) ? (run / ".." / "..").lexically_normal() : run;
}

// The kernels that the run's GPUs took; none if it had no choice.
std::vector<engine::KernelChoice> saved_kernels(const EvaluateArguments& arguments) {
  const std::filesystem::path file = run_directory_of(arguments) / jobs::kKernelsFile;
  std::error_code error;
  return std::filesystem::exists(file, error) ? jobs::read_kernel_choices(file) : std::vector<engine::KernelChoice>{};
}

// --data-root, else the data root of the run if it is here, else what a new run would use.
std::string data_root_of(const EvaluateArguments& arguments) {
  if (!arguments.data_root.empty()) return arguments.data_root;
  std::error_code error;
  std::string saved = jobs::saved_data_root(run_directory_of(arguments));
  return std::filesystem::is_directory(saved, error) ? saved : data_root("");
}

// The score of the model on the set, as it was when the model was saved; none if it is not known.
std::optional<double> saved_score(const ChosenModel& model, const jobs::JobOptions& job, jobs::EvaluationSet set,
                                  const std::string& name) {
  if (model.summary) {
    return (set == jobs::EvaluationSet::kTest ? model.summary->test : model.summary->validation).value(name);
  }
  const auto judged = job.data.has_validation() ? jobs::EvaluationSet::kValidation : jobs::EvaluationSet::kTest;
  return model.best && set == judged ? std::optional(model.best->score) : std::nullopt;
}

int evaluate(EvaluateArguments arguments) {
  find_run(arguments.run);
  const std::filesystem::path run = arguments.run.run;
  const auto set = arguments.split == "test" ? jobs::EvaluationSet::kTest : jobs::EvaluationSet::kValidation;
  const jobs::JobOptions job = jobs::load_for_evaluation((run / jobs::kJobFile).string(), arguments.run.devices);
  log_warnings(job.warnings);
  warn_of_unused_data_root(job, arguments.data_root, (run / jobs::kJobFile).string());
  jobs::RunContext context;
  context.data_root = data_root_of(arguments);
  context.device_options.recorded_kernels = saved_kernels(arguments);
  context.device_options.keeps_recorded_kernels = false;  // another kind of GPU may evaluate, in other last digits
  ChosenModel model;
  const jobs::EvaluationResult result = read_chosen(arguments.run, [&](const ChosenModel& chosen) {
    model = chosen;
    return jobs::evaluate_run(job, chosen.path, chosen.sha256, context, {.set = set, .per_class = arguments.per_class});
  });
  log_warnings(result.warnings);
  const std::string& name = dataflow::score_of(result.metrics).name;
  const std::optional<double> score = result.scores.value(name);
  if (const std::optional<double> saved = saved_score(model, job, set, name); saved && *saved != score) {
    spdlog::warn(
        "{}_{} is {} now and was {} when '{}' was saved: its job.txtpb, the data, the program or the device has "
        "changed since",
        arguments.split, name, score.value_or(std::nan("")), *saved, arguments.run.run);
  }
  if (arguments.json) {
    print_data(fmt::format("{}\n", jobs::to_json(result).dump(2)));
  } else {
    for (const jobs::Score& each : result.scores) {
      if (each.value && each.name != "loss")
        print_result(fmt::format("{}_{} {}\n", arguments.split, each.name, *each.value));
    }
    print_result(fmt::format("{}_loss {}\nexamples {}\n", arguments.split, jobs::unsigned_nan(result.scores.loss()),
                             result.examples));
    if (result.classes) print_result(fmt::format("\n{}", jobs::class_report(*result.classes, result.class_names)));
  }
  return kOk;
}

}  // namespace

Command add_evaluate(CLI::App& program) {
  auto arguments = std::make_shared<EvaluateArguments>();
  CLI::App* command =
      program.add_subcommand("evaluate", "Measure the saved model of a run on its test or validation set");
  command->footer(
      "Examples:\n"
      "  arbalest evaluate runs/lenet-digits-20250131-142530\n"
      "  arbalest evaluate runs/lenet-digits-20250131-142530 --devices cpu\n"
      "  arbalest evaluate runs/lenet-digits-20250131-142530 --per-class\n"
      "\n"
      "On the run's devices the result equals the run's to the last digit. On another kind of device the\n"
      "last digits may differ.\n"
      "\n" +
      std::string(kExitCodesHelp));
  add_run_arguments(*command, arguments->run);
  command
      ->add_option("--split", arguments->split,
                   "Set to evaluate on (default: test); validation is for jobs that have such a set")
      ->type_name("SPLIT")
      ->check(CLI::IsMember({"test", "validation"}));
  command
      ->add_option("--data-root", arguments->data_root,
                   "Directory of the datasets (default: where the run found them, or $ARBALEST_DATA, or data/)")
      ->type_name("DIR")
      ->check(check_name);
  command->add_flag("--per-class", arguments->per_class,
                    "Also print precision, recall and F1 by class, their means, and the confusion matrix");
  command->add_flag("--json", arguments->json, "Print JSON");
  return {command, [arguments] { return evaluate(*arguments); }};
}

}  // namespace arbalest::cli
