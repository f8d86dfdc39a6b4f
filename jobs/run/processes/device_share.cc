#include "jobs/run/processes/device_share.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/error.h"
#include "engine/host/topology.h"
#include "engine/process/all_gather.h"

namespace arbalest::jobs {

using engine::DeviceSpec;
using engine::process::World;

namespace {

// The cores of one process. A quota may allow fewer than there are; processes then take turns on none.
std::vector<int> cores_of(const World& world, const std::vector<int>& allowed) {
  const int share = std::max(1, engine::host::usable_cores() / world.local_size());
  std::vector<int> cores;
  for (int i = 0; i < share; ++i) {
    cores.push_back(allowed[static_cast<std::size_t>(world.local_rank() * share + i) % allowed.size()]);
  }
  std::ranges::sort(cores);
  return cores;
}

DeviceShare share_of_cpu(const World& world, bool are_divided) {
  const std::vector<int> allowed = engine::host::allowed_cores();
  if (are_divided) {
    DeviceShare share{.devices = {{"cpu", {}, -1}}};
    if (world.local_size() > 1 && allowed.size() == 1) {
      share.warning = fmt::format(
          "the launcher has bound each process to one core, and a process computes on no other: rank {} to core {}; "
          "with mpirun, --bind-to none lets the processes share all cores",
          world.rank(), allowed.front());
    }
    return share;
  }
  const std::vector<int> cores = cores_of(world, allowed);
  DeviceShare share{.devices = {engine::parse_device(fmt::format("cpu:{}", fmt::join(cores, ",")))}};
  if (static_cast<std::size_t>(world.local_size()) > allowed.size()) {
    share.warning = fmt::format(
        "{} processes share the {} cores of host {}; fewer processes with more learners each "
        "train faster",
        world.local_size(), allowed.size(), world.host(world.rank()));
  }
  return share;
}

}  // namespace

bool cores_are_divided(World& world) {
  const std::string mask =
      fmt::format("{} {}", world.host(world.rank()), fmt::join(engine::host::allowed_cores(), ","));
  return std::ranges::count(engine::process::all_gather(world, mask), mask) == 1;
}

DeviceShare share_of_devices(const std::vector<DeviceSpec>& devices, const World& world, bool cores_are_divided) {
  const bool is_whole_cpu = devices.size() == 1 && !devices.front().is_cuda() && devices.front().cores.empty();
  if (is_whole_cpu) return share_of_cpu(world, cores_are_divided);
  const auto processes = static_cast<std::size_t>(world.local_size());
  if (devices.size() % processes != 0) {
    std::vector<std::string> names;
    for (const DeviceSpec& device : devices) names.push_back(device.name);
    engine::fail(engine::ErrorKind::kInvalidJob,
                 "the {} processes on host {} cannot share the {} of the job ({}) equally; start as many processes on "
                 "each host as it has devices, or set devices to \"cpu\", whose cores are divided",
                 processes, world.host(world.rank()), devices.size() == 1 ? "device" : "devices",
                 fmt::join(names, ", "));
  }
  const std::size_t share = devices.size() / processes;
  const auto first = devices.begin() + static_cast<std::ptrdiff_t>(share) * world.local_rank();
  return {.devices = {first, first + static_cast<std::ptrdiff_t>(share)}};
}

}  // namespace arbalest::jobs
