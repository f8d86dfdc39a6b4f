#include "cli/processes.h"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "cli/environment.h"
#include "cli/error_report.h"
#include "cli/exit_codes.h"
#include "engine/process/launch.h"
#include "engine/process/srun.h"
#include "messages/failure.h"
#include "messages/source_commit.h"
#include "train/processes/shared_results.h"

namespace arbalest::cli {

using engine::process::World;

namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Every process of the launch finds the same error of usage. Rank 0 reports it. The others leave it the time to do so,
// because launchers end all processes when the first one has failed.
[[noreturn]] void leave(const engine::process::Launch& launch, const std::string& error) {
  if (launch.rank == 0) {
    report_error(kUsageError, error);
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  std::exit(kUsageError);
}

// All hosts must have the same program. Other versions may exchange other messages, or compute other bytes.
void require_same_program(World& world) {
  const std::string own = fmt::format("{} ({})", ARBALEST_VERSION, jobs::source_commit());
  const std::vector<int> others = world.agree(own);
  if (others.empty()) return;
  throw jobs::SharedError(engine::ErrorKind::kUsage,
                          fmt::format("{} runs another version of the program than rank 0 (arbalest {}); install the "
                                      "same build on all hosts",
                                      world.place(others.front()), own));
}

int run_together(World& world, const std::function<int(World&)>& body) {
  try {
    require_same_program(world);
    const int code = body(world);
    world.close();
    return code;
  } catch (const jobs::SharedError& error) {
    if (world.rank() == 0) report_error(exit_code(error.kind()), error.what());
    world.close();
    return exit_code(error.kind());
  }
}

}  // namespace

void require_one_process(const std::string& command) {
  const std::optional<engine::process::Launch> launch = engine::process::find_launch(variable);
  if (!launch) return;
  leave(*launch, fmt::format("'arbalest {}' runs in one process, and {} has started several; start it without that "
                             "(only 'arbalest train' runs in several processes)",
                             command, launch->launcher));
}

int run_in_processes(const std::function<int(World&)>& body) {
  const std::optional<engine::process::Launch> launch = engine::process::find_launch(variable);
  if (launch && engine::process::is_srun_without_mpi(variable)) {
    leave(*launch, fmt::format("{} has started {} processes without MPI: add --mpi=pmix (Open MPI) or "
                               "--mpi=pmi2 (MPICH)",
                               launch->launcher, launch->size));
  }
  const std::unique_ptr<World> world =
      engine::process::open_world(launch, {.exit_code = [](engine::ErrorKind kind) { return exit_code(kind); }});
  if (world->size() == 1) return body(*world);
  tag_log(world->rank());
  try {
    return run_together(*world, body);
  } catch (const std::exception& error) {
    const engine::Error known = jobs::as_error(error);
    world->announce_failure(known);
    report_error(exit_code(known.kind()), fmt::format("{}: {}", world->place(world->rank()), known.what()));
    world->abort(exit_code(known.kind()));
  }
}

}  // namespace arbalest::cli
