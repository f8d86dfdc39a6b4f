// All processes of a run take the kernels that rank 0 has chosen.
#pragma once

#include <memory>
#include <span>

#include "engine/device.h"
#include "engine/process/world.h"

namespace arbalest::jobs {

// The first device of rank 0 has chosen its kernels; the devices of the other ranks take them. An operator that rank 0
// does not have is chosen by each process for itself. A call of World's operations.
void share_kernel_choices(engine::process::World& world, std::span<const std::unique_ptr<engine::Device>> devices);

}  // namespace arbalest::jobs
