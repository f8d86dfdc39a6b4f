#include "options/readers/devices_reader.h"

#include <utility>

#include "engine/backends/cuda_devices.h"
#include "engine/base/error.h"

namespace arbalest::jobs {

std::vector<engine::DeviceSpec> read_devices(const v1::Job& job, dataflow::FieldIssues& issues) {
  std::vector<engine::DeviceSpec> sound;
  for (int i = 0; i < job.devices_size(); ++i) {
    try {
      std::vector<engine::DeviceSpec> devices = sound;
      devices.push_back(engine::parse_device(job.devices(i)));
      if (devices.back().is_cuda()) engine::find_cuda_device(devices.back());
      engine::check_disjoint(devices);
      sound = std::move(devices);
    } catch (const engine::Error& error) {
      issues.add(fmt::format("devices[{}]", i), error.what());
    }
  }
  return sound;
}

}  // namespace arbalest::jobs
