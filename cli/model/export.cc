// arbalest export RUN
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "cli/model/chosen_model.h"
#include "cli/stop_signals.h"
#include "interchange/export/run_export.h"
#include "messages/text.h"
#include "options/loading/evaluation_job.h"

namespace arbalest::cli {

namespace {

struct ExportArguments {
  RunArguments run;
  std::string format = "onnx";
  jobs::ExportOptions options;
  std::string output;
  bool json = false;
};

// A signal ends it when the file is whole.
int run_export(ExportArguments arguments) {
  const std::atomic<int>& stop_signal = catch_stop_signals("arbalest: stopped at once; a partial file may be left\n");
  find_run(arguments.run);
  // The job is read for its graph and its data's description; the CPU is there in any case.
  const std::vector<std::string> devices = {"cpu"};
  const std::filesystem::path job_file = std::filesystem::path(arguments.run.run) / jobs::kJobFile;
  const jobs::JobOptions job = jobs::load_for_evaluation(job_file.string(), devices);
  jobs::ExportOptions options = arguments.options;
  options.output = arguments.output;
  options.format = arguments.format == "onnx" ? jobs::ExportFormat::kOnnx : jobs::ExportFormat::kSafetensors;
  const jobs::ExportReport report = read_chosen(arguments.run, [&](const ChosenModel& model) {
    return jobs::export_model(job, model.path, model.sha256, options);
  });
  log_warnings(report.warnings);
  if (arguments.json) {
    const nlohmann::ordered_json row = {{"file", arguments.output},
                                        {"format", arguments.format},
                                        {"bytes", report.bytes},
                                        {"tensors", report.tensors},
                                        {"sha256", report.sha256}};
    print_data(fmt::format("{}\n", row.dump(2)));
  } else {
    print_result(fmt::format("{}: {}, {}, SHA-256 {}\n", arguments.output, jobs::counted(report.tensors, "tensor"),
                             jobs::counted(report.bytes, "byte"), report.sha256));
  }
  return stop_signal == 0 ? kOk : kSignalBase + stop_signal;
}

}  // namespace

Command add_export(CLI::App& program) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = program.add_subcommand("export", "Write the saved model of a run to a file for other programs");
  command->footer(
      "Examples:\n"
      "  arbalest export runs/lenet-digits-20250131-142530 --output lenet.onnx\n"
      "  arbalest export runs/lenet-digits-20250131-142530 --output lenet.onnx --softmax\n"
      "  arbalest export runs/lenet-digits-20250131-142530 --format safetensors --output lenet.safetensors\n"
      "\n"
      "ONNX files have operator set 13, or 17 with layer_norm, and a dynamic batch size. Their input 'image'\n"
      "takes normalized pixels, and the metadata say how to normalize; 'ids' takes ids. Their output is\n"
      "'logits', or 'prediction' for models that predict numbers. The same model gives the same bytes.\n"
      "\n" +
      std::string(kExitCodesHelp));
  add_model_arguments(*command, arguments->run);
  command->add_option("--output", arguments->output, "File to write; it is replaced if it exists")
      ->type_name("FILE")
      ->required()
      ->check(check_name);
  command->add_option("--format", arguments->format, "Format of the file (default: onnx)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"onnx", "safetensors"}));
  command->add_flag("--softmax", arguments->options.softmax,
                    "Add the output 'probabilities', the softmax of the logits (onnx)");
  command->add_flag("--json", arguments->json, "Print JSON");
  return {command, [arguments] { return run_export(*arguments); }};
}

}  // namespace arbalest::cli
