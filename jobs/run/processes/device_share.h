// The part of a machine's devices that one of its processes trains on.
#pragma once

#include <string>
#include <vector>

#include "engine/devices.h"
#include "engine/process/world.h"

namespace arbalest::jobs {

struct DeviceShare {
  std::vector<engine::DeviceSpec> devices;
  std::string warning = {};  // "": none
};

// Whether the launcher has bound each process of this machine to cores of its own. A call of World's operations.
bool cores_are_divided(engine::process::World& world);

// Divides the job's devices among the processes of this machine, in order of their local ranks: the cores of "cpu",
// unless they are divided already, or the named devices. Throws kInvalidJob if those cannot be divided equally.
DeviceShare share_of_devices(const std::vector<engine::DeviceSpec>& devices, const engine::process::World& world,
                             bool cores_are_divided);

}  // namespace arbalest::jobs
