// Whether the devices that a job names are here.
#pragma once

#include "engine/devices.h"

namespace arbalest::jobs {

// Throws ErrorKind::kInvalidJob if the GPU that `spec` names is not on this machine. (The cores of a CPU device were
// looked for when its name was parsed.)
void check_present(const engine::DeviceSpec& spec);

}  // namespace arbalest::jobs
