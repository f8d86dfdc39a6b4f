// arbalest import MODEL.onnx
#include <atomic>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "cli/stop_signals.h"
#include "interchange/import/job_writer.h"
#include "messages/text.h"

namespace arbalest::cli {

namespace {

struct ImportArguments {
  std::string model;
  std::string output;
  std::string job;
};

// A signal ends it when the files are whole.
int run_import(const ImportArguments& arguments) {
  const std::atomic<int>& stop_signal = catch_stop_signals("arbalest: stopped at once; partial files may be left\n");
  const jobs::ImportReport report =
      jobs::import_model(arguments.model, {.output = arguments.output, .job = arguments.job});
  log_warnings(report.notes);
  print_result(fmt::format("{}: {}, {}\n", report.job.string(), jobs::counted(report.layers, "layer"),
                           jobs::counted(report.parameters, "parameter")));
  return stop_signal == 0 ? kOk : kSignalBase + stop_signal;
}

}  // namespace

Command add_import(CLI::App& program) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* command = program.add_subcommand("import", "Make a job with weights of an ONNX model");
  command->footer(
      "Examples:\n"
      "  arbalest import resnet18.onnx --output resnet18\n"
      "  arbalest import resnet18.onnx --output resnet18 --job my-data.txtpb\n"
      "  arbalest train resnet18/job.txtpb      continue training from its weights\n"
      "  arbalest evaluate resnet18             measure it as it is\n"
      "\n"
      "The directory holds job.txtpb, which lists the model's layers, and model.safetensors. A model with an\n"
      "operator that has no layer here is refused (exit code 3), and all such operators are listed.\n"
      "\n"
      "PyTorch's exporter folds batch norm into convolutions. A warning names the command that keeps it.\n"
      "\n" +
      std::string(kExitCodesHelp));
  command->add_option("MODEL", arguments->model, "ONNX file")->required()->check(check_name);
  command->add_option("--output", arguments->output, "Directory to create")
      ->type_name("DIR")
      ->required()
      ->check(check_name);
  command
      ->add_option("--job", arguments->job,
                   "Job file to copy all settings from, except its model and initial weights, which may be missing "
                   "(default: usual settings, and images in the folder 'data')")
      ->type_name("JOB")
      ->check(check_name);
  return {command, [arguments] { return run_import(*arguments); }};
}

}  // namespace arbalest::cli
