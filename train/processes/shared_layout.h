// The layout of the parameters that all processes of a run take. Processors and GPUs of different kinds, and different
// numbers of threads, prefer different layouts, and sums over processes add flat vectors element by element.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataflow/parameter_layout.h"
#include "engine/backends/devices.h"
#include "engine/base/precision.h"
#include "engine/device.h"
#include "engine/process/world.h"

namespace arbalest::jobs {

// `own`: the layout that this process prefers, on `device`. Returns the layout that it must take instead: that of the
// first of the processes with the fewest instruction sets, because the others wait for them; none if it is the same.
// A call of World's operations. Throws SharedError.
std::optional<dataflow::ParameterLayout> layout_of_all(engine::process::World& world, const engine::Device& device,
                                                       const dataflow::ParameterLayout& own);

// Checks that flat vectors of all processes have the same layout and precision. A call of World's operations. Throws
// SharedError of kind kDevice that names a process.
void require_same_layout(engine::process::World& world, const dataflow::ParameterLayout& layout,
                         engine::Precision precision);

// Returns a warning if the processes compute with different instructions, GPUs or versions of libraries; "" if not. A
// call of World's operations.
std::string warning_of_unlike_kernels(engine::process::World& world, const engine::DeviceSpec& device);

}  // namespace arbalest::jobs
