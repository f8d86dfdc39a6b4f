#include "train/processes/device_share.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/backends/cuda_devices.h"
#include "engine/host/topology.h"
#include "engine/process/all_gather.h"
#include "engine/process/packing.h"

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
        "{} processes share the {} cores of host {}; use fewer processes, each with more learners: this is faster",
        world.local_size(), allowed.size(), world.host(world.rank()));
  }
  return share;
}

// Whether no other process of this machine has one of `own`, which is not empty. A call of World's operations.
bool are_divided(World& world, const std::vector<std::string>& own) {
  const std::string host = world.host(world.rank());
  const std::vector<std::string> all = engine::process::all_gather(world, engine::process::pack(own));
  int owners = 0;  // of the first of `own`
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (world.host(static_cast<int>(rank)) != host) continue;
    const std::vector<std::string> theirs = engine::process::unpack(all[rank]);
    owners += std::ranges::find_first_of(own, theirs) != own.end() ? 1 : 0;
  }
  return !own.empty() && owners == 1;
}

}  // namespace

LauncherShares shares_of_launcher(World& world) {
  std::vector<std::string> cores;
  for (const int core : engine::host::allowed_cores()) cores.push_back(std::to_string(core));
  std::vector<std::string> gpus;
  for (const engine::CudaDeviceInfo& gpu : engine::find_cuda_devices().devices) gpus.push_back(gpu.id);
  LauncherShares divided;
  divided.cores = are_divided(world, cores);
  divided.gpus = are_divided(world, gpus);
  return divided;
}

DeviceShare share_of_devices(const std::vector<DeviceSpec>& devices, const World& world,
                             const LauncherShares& divided) {
  const bool is_whole_cpu = devices.size() == 1 && !devices.front().is_cuda() && devices.front().cores.empty();
  if (is_whole_cpu) return share_of_cpu(world, divided.cores);
  if (devices.front().is_cuda() && divided.gpus) return {.devices = devices};
  const auto processes = static_cast<std::size_t>(world.local_size());
  if (devices.size() % processes != 0) {
    std::vector<std::string> names;
    for (const DeviceSpec& device : devices) names.push_back(device.name);
    return {
        .devices = {},
        .problem = fmt::format(
            "the {} processes on host {} cannot share the {} of the job ({}) equally; start as many processes on "
            "each host as it has devices, or set devices to \"cpu\", whose cores are divided",
            processes, world.host(world.rank()), devices.size() == 1 ? "device" : "devices", fmt::join(names, ", "))};
  }
  const std::size_t share = devices.size() / processes;
  const auto first = devices.begin() + static_cast<std::ptrdiff_t>(share) * world.local_rank();
  return {.devices = {first, first + static_cast<std::ptrdiff_t>(share)}};
}

}  // namespace arbalest::jobs
