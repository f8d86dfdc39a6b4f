#include "train/learners/processor_use.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace arbalest::jobs {

std::unique_ptr<engine::host::ProcessorClock> make_processor_clock(const JobOptions& job) {
  std::vector<int> cores;
  bool names_all = true;
  for (const engine::DeviceSpec& device : job.devices) {
    if (device.is_cuda()) return nullptr;
    names_all = names_all && !device.cores.empty();
    cores.insert(cores.end(), device.cores.begin(), device.cores.end());
  }
  if (!names_all || cores.empty()) cores = engine::host::allowed_cores();
  return std::make_unique<engine::host::ProcessorClock>(std::move(cores));
}

autotuner::ProcessorUse take_use(engine::host::ProcessorClock& clock) {
  const engine::host::ProcessorTime time = clock.take();
  if (!time.is_known) return {};
  return {.seconds = time.seconds, .used = time.used, .lost = time.lost};
}

}  // namespace arbalest::jobs
