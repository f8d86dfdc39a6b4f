#include "train/processes/shared_job.h"

#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/process/packing.h"
#include "options/loading/load_job.h"
#include "options/loading/parsed_job.h"
#include "options/synchronization/job_schemes.h"
#include "train/processes/device_share.h"
#include "train/processes/shared_bounds.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

using engine::process::World;

namespace {

constexpr const char* kDevicesPath = "devices[0]";

// Machines without GPUs train on their CPU if the job names no devices.
void check_kinds(World& world, const engine::DeviceSpec& own, const ParsedJob& parsed,
                 std::span<const std::string> overrides) {
  const std::vector<int> others = world.agree(own.is_cuda() ? "GPUs" : "CPU devices");
  if (others.empty()) return;
  const bool has_gpus = join(world, {own.is_cuda() ? 1 : 0}).front() == 1;
  const engine::Error error = parsed.error_at(
      kDevicesPath, overrides,
      fmt::format("rank 0 trains on {}, and {} on {}: the devices of all processes must be of one kind; name them, as "
                  "in devices: \"cpu\"",
                  has_gpus ? "GPUs" : "CPU devices", world.place(others.front()), has_gpus ? "CPU devices" : "GPUs"));
  throw SharedError(error.kind(), error.what());
}

int hosts_of(const World& world) {
  std::set<std::string> hosts;
  for (int rank = 0; rank < world.size(); ++rank) hosts.insert(world.host(rank));
  return static_cast<int>(hosts.size());
}

// Returns the path of the job's first hogwild; "" if there is none.
std::string path_of_hogwild(const JobOptions& job) {
  if (!job.sparse) return path_of(sma::Scheme::kHogwild, job);
  return std::holds_alternative<HogwildOptions>(job.sparse->scheme) ? "synchronization.hogwild" : "";
}

void check_hogwild(const World& world, const JobOptions& job, const ParsedJob& parsed,
                   std::span<const std::string> overrides) {
  const std::string path = path_of_hogwild(job);
  if (path.empty()) return;
  throw parsed.error_at(
      path, overrides,
      fmt::format("{}: the learners of hogwild share the memory of one process, and this run has {} processes; start "
                  "it without mpirun or srun, or choose another scheme",
                  path, world.size()));
}

// The settings of the user, with these devices.
std::vector<std::string> with_devices(std::span<const std::string> overrides,
                                      const std::vector<engine::DeviceSpec>& devices) {
  std::vector<std::string> settings;
  for (const std::string& setting : overrides) {
    if (!setting.starts_with("devices")) settings.push_back(setting);
  }
  std::vector<std::string> names;
  for (const engine::DeviceSpec& device : devices) names.push_back(fmt::format("\"{}\"", device.name));
  settings.push_back(fmt::format("devices=[{}]", fmt::join(names, ", ")));
  return settings;
}

}  // namespace

SourceText read_shared_job_file(World& world, const std::string& path) {
  if (world.size() == 1) return read_job_file(path);
  std::optional<SourceText> source;
  together(world, [&] {
    if (world.rank() == 0) source = read_job_file(path);
  });
  std::string message;
  if (source) message = engine::process::pack(std::vector{source->name(), source->text()});
  world.broadcast(message);
  std::vector<std::string> parts = engine::process::unpack(message);
  return {std::move(parts[0]), std::move(parts[1])};
}

JobOptions load_shared_job(World& world, const std::string& path, std::span<const std::string> overrides) {
  return load_shared_job(world, read_shared_job_file(world, path), overrides);
}

JobOptions load_shared_job(World& world, const SourceText& source, std::span<const std::string> overrides) {
  if (world.size() == 1) {
    const ParsedJob parsed(source);
    JobOptions options = parsed.read(overrides);
    parsed.warn(overrides, options);
    return options;
  }
  const LauncherShares divided = shares_of_launcher(world);
  std::optional<ParsedJob> parsed;
  DeviceShare share;
  std::string text;
  together(world, [&] {
    parsed.emplace(source);
    const JobOptions whole = parsed->read(overrides, {.processes = world.size(), .hosts = hosts_of(world)});
    check_hogwild(world, whole, *parsed, overrides);
    text = whole.resolved_text;
    share = share_of_devices(whole.devices, world, divided);
    if (!share.problem.empty()) throw parsed->error_at(kDevicesPath, overrides, share.problem);
  });
  check_kinds(world, share.devices.front(), *parsed, overrides);
  const std::vector<int> devices = join(world, {static_cast<int>(share.devices.size())});
  JobOptions job;
  together(world, [&] {
    const RunShape shape{.processes = world.size(), .devices = std::reduce(devices.begin(), devices.end())};
    job = parsed->read(with_devices(overrides, share.devices), shape);
  });
  world.broadcast(text);
  job.resolved_text = std::move(text);
  if (!job.sparse) share_bounds(world, job);  // blocks have no rounds
  job.growth_error = parsed->growth_error(overrides, job);
  parsed->warn(overrides, job);
  if (!share.warning.empty()) job.warnings.push_back(share.warning);
  if (job.training.divergence.rolls_back) {
    job.warnings.push_back(
        "training.on_divergence: with several processes a run goes back when a value is not finite; a spike of the "
        "loss is not noticed, so training.spike_factor has no effect");
  }
  world.set_peer_timeout(job.processes.peer_timeout_seconds);
  world.set_all_reduce(job.processes.all_reduce);
  return job;
}

}  // namespace arbalest::jobs
