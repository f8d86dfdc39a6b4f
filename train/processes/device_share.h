// The part of a machine's devices that one of its processes trains on.
#pragma once

#include <string>
#include <vector>

#include "engine/backends/devices.h"
#include "engine/process/world.h"

namespace arbalest::jobs {

struct DeviceShare {
  std::vector<engine::DeviceSpec> devices;
  std::string warning = {};  // "": none
  std::string problem = {};  // why the devices cannot be divided; "": they are
};

// Tells what the launcher has already divided among the processes of this machine.
struct LauncherShares {
  bool cores = false;  // each process is bound to cores of its own
  bool gpus = false;   // each process sees GPUs of its own, as with Slurm's --gpus-per-task
};

// A call of World's operations.
LauncherShares shares_of_launcher(engine::process::World& world);

// Divides the job's devices among the processes of this machine, in order of their local ranks, unless they are divided
// already: the cores of "cpu", or the named devices, which must be a multiple of the processes.
DeviceShare share_of_devices(const std::vector<engine::DeviceSpec>& devices, const engine::process::World& world,
                             const LauncherShares& divided);

}  // namespace arbalest::jobs
