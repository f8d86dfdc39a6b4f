// arbalest inspect JOB
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/command.h"
#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "options/loading/load_job.h"
#include "report/inspection/inspection_report.h"
#include "report/inspection/parallelism_report.h"
#include "train/inspection.h"
#include "train/parallelism/parallelism_costs.h"

namespace arbalest::cli {

namespace {

constexpr int kMostDevices = 100'000;

struct InspectArguments {
  JobArguments job;
  std::string data_root;
  bool json = false;
  bool expand = false;
  bool timings = false;
  std::optional<std::string> links;  // with it, the table of parallelism is printed
  int devices = 0;
  std::optional<std::string> flops;
};

template <typename Result>
void print(const Result& result, bool as_json) {
  if (as_json) {
    print_data(jobs::to_json(result).dump(2) + "\n");
  } else {
    print_result(jobs::to_text(result));
  }
}

jobs::AssumedDevices assumed_devices(const InspectArguments& arguments) {
  jobs::AssumedDevices devices{.count = arguments.devices, .link = jobs::parse_link("--links", *arguments.links)};
  if (arguments.flops) devices.flops_per_second = jobs::parse_compute_speed("--flops", *arguments.flops);
  return devices;
}

int inspect(const InspectArguments& arguments) {
  if (arguments.expand) {
    log_warnings(load(arguments.job).warnings);
    print_data(jobs::expand_job(jobs::read_job_file(arguments.job.path), arguments.job.overrides));
    return kOk;
  }
  std::optional<jobs::AssumedDevices> devices;
  if (arguments.links) devices = assumed_devices(arguments);
  const jobs::JobOptions job = load(arguments.job);
  log_warnings(job.warnings);
  if (devices) {
    const jobs::ParallelismCosts costs = jobs::parallelism_costs(job, *devices);
    if (const std::string warning = jobs::scheme_warning(job); !warning.empty()) log_warnings({warning});
    print(costs, arguments.json);
    return kOk;
  }
  jobs::Inspection inspection =
      jobs::inspect(job, arguments.timings ? engine::KernelSelection::kTimed : engine::KernelSelection::kFixed);
  inspection.classes = jobs::find_class_table(job.data, data_root(arguments.data_root), inspection.warnings);
  log_warnings(inspection.warnings);
  print(inspection, arguments.json);
  return kOk;
}

void add_assumed_devices(CLI::App& command, InspectArguments& arguments, CLI::Option* expand) {
  CLI::Option* links =
      command
          .add_option("--links", arguments.links,
                      "Speed and latency of a device's link, such as 12GB/s,5us or 40Gbit/s,20us. Instead of the "
                      "usual report, print, for each layer, the bytes and the time that communication between "
                      "--devices-assumed takes per mini-batch, both data-parallel and split over the devices")
          ->type_name("SPEED,LATENCY")
          ->excludes(expand);
  CLI::Option* devices = command
                             .add_option("--devices-assumed", arguments.devices,
                                         fmt::format("Number of devices for --links, from 2 to {}", kMostDevices))
                             ->type_name("P")
                             ->check(check_decimal)
                             ->check(CLI::Range(2, kMostDevices))
                             ->needs(links);
  links->needs(devices);
  command
      .add_option("--flops", arguments.flops,
                  "With --links, also take computation into account: the speed of one device, such as 10TFLOP/s")
      ->type_name("SPEED")
      ->needs(links);
}

}  // namespace

Command add_inspect(CLI::App& program) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = program.add_subcommand(
      "inspect",
      "Show a job's layers, shapes, parameters, FLOPs, bytes, how many learners fit, learning rate and classes");
  command->footer(
      "Examples:\n"
      "  arbalest inspect configs/lenet-mnist.txtpb --set training.batch_size=64\n"
      "  arbalest inspect configs/lenet-mnist.txtpb --links 12GB/s,5us --devices-assumed 4\n\n" +
      std::string(kExitCodesHelp));
  add_job_arguments(*command, arguments->job);
  add_data_root(*command, arguments->data_root);
  CLI::Option* json = command->add_flag("--json", arguments->json, "Print JSON");
  CLI::Option* expand =
      command
          ->add_flag("--expand", arguments->expand,
                     "Instead, print the job file with the layers of its model of the zoo listed one by one")
          ->excludes(json);
  command
      ->add_flag("--timings", arguments->timings,
                 "GPU: time the candidates of kernels, as a run does that begins, and print the microseconds")
      ->excludes(expand);
  add_assumed_devices(*command, *arguments, expand);
  return {command, [arguments] { return inspect(*arguments); }};
}

}  // namespace arbalest::cli
