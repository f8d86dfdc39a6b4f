// The processes of the run that a job is read for, as far as they are known at that point.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/backends/devices.h"

namespace arbalest::jobs {

struct RunShape {
  int processes = 1;
  int hosts = 0;             // that divide the devices which the job names among their processes; 0: unknown
  std::int64_t devices = 0;  // of all processes; 0: they follow from the job's
};

// Returns the number of devices of all processes in a run of a job with `devices`; 0: unknown. GPUs may differ from
// host to host.
inline std::int64_t devices_of_all(const RunShape& shape, const std::vector<engine::DeviceSpec>& devices) {
  if (shape.processes == 1) return static_cast<std::int64_t>(devices.size());
  if (shape.devices > 0) return shape.devices;
  if (shape.hosts == 0 || devices.empty() || devices.front().is_cuda()) return 0;
  const bool is_whole_cpu = devices.size() == 1 && devices.front().cores.empty();  // each process gets a part
  return is_whole_cpu ? shape.processes : static_cast<std::int64_t>(devices.size()) * shape.hosts;
}

}  // namespace arbalest::jobs
