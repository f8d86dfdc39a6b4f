// arbalest inspect JOB
#include <memory>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "jobs/report/inspection_report.h"
#include "jobs/run/inspection.h"

namespace arbalest::cli {

namespace {

struct InspectArguments {
  JobArguments job;
  bool json = false;
};

int inspect(const InspectArguments& arguments) {
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
  command->footer("Example:\n  arbalest inspect configs/lenet-mnist.txtpb --set training.batch_size=64");
  add_job_arguments(*command, arguments->job);
  command->add_flag("--json", arguments->json, "Print JSON");
  return {command, [arguments] { return inspect(*arguments); }};
}

}  // namespace arbalest::cli
