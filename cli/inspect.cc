// arbalest inspect JOB
#include <memory>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "jobs/options/load_job.h"
#include "jobs/report/inspection_report.h"
#include "jobs/run/inspection.h"

namespace arbalest::cli {

namespace {

struct InspectArguments {
  JobArguments job;
  bool json = false;
  bool expand = false;
};

int inspect(const InspectArguments& arguments) {
  if (arguments.expand) {
    fmt::print("{}", jobs::expand_job(jobs::read_job_file(arguments.job.path), arguments.job.overrides));
    return kOk;
  }
  const jobs::JobOptions job = load(arguments.job);
  log_warnings(job.warnings);
  const jobs::Inspection inspection = jobs::inspect(job);
  log_warnings(inspection.warnings);
  if (arguments.json) {
    fmt::print("{}\n", jobs::to_json(inspection).dump(2));
  } else {
    fmt::print("{}", jobs::to_text(inspection));
  }
  return kOk;
}

}  // namespace

Command add_inspect(CLI::App& program) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = program.add_subcommand(
      "inspect", "Show a job's layers, shapes, parameters, FLOPs, bytes, how many learners fit, and learning rate");
  command->footer("Example:\n  arbalest inspect configs/lenet-mnist.txtpb --set training.batch_size=64\n\n" +
                  std::string(kExitCodesHelp));
  add_job_arguments(*command, arguments->job);
  CLI::Option* json = command->add_flag("--json", arguments->json, "Print JSON");
  command
      ->add_flag("--expand", arguments->expand,
                 "Instead, print the job file with the layers of its model of the zoo listed one by one")
      ->excludes(json);
  return {command, [arguments] { return inspect(*arguments); }};
}

}  // namespace arbalest::cli
