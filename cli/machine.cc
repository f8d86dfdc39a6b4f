// arbalest devices, arbalest env
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/machine_report.h"

namespace arbalest::cli {

Command add_devices(CLI::App& program) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = program.add_subcommand("devices", "List the devices that a job can name");
  command->add_flag("--json", *json, "Print JSON");
  return {command, [json] {
            const engine::CudaMachine gpus = engine::find_cuda_devices();
            const nlohmann::ordered_json report = device_report(gpus);
            if (*json) {
              fmt::print("{}\n", report.dump(2));
            } else {
              for (const auto& device : report) fmt::print("{}", as_text(device));
            }
            // Explains, as `arbalest env` does, why the list has no GPU. fmt::print would throw on a closed stderr.
            if (!gpus.problem.empty()) std::fputs(fmt::format("cuda: {}\n", gpus.problem).c_str(), stderr);
            return kOk;
          }};
}

Command add_env(CLI::App& program) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      program.add_subcommand("env", "Show versions, and the cores, memory and instructions that the process may use");
  command->add_flag("--json", *json, "Print JSON");
  return {command, [json] {
            const nlohmann::ordered_json report = environment_report();
            fmt::print("{}", *json ? report.dump(2) + "\n" : as_text(report));
            return kOk;
          }};
}

}  // namespace arbalest::cli
