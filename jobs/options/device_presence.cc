#include "jobs/options/device_presence.h"

#include "engine/cuda_devices.h"
#include "engine/error.h"
#include "jobs/report/text.h"

namespace arbalest::jobs {

void check_present(const engine::DeviceSpec& spec) {
  using engine::ErrorKind;
  if (!spec.is_cuda()) return;
  const engine::CudaMachine machine = engine::find_cuda_devices();
  if (!machine.problem.empty()) engine::fail(ErrorKind::kInvalidJob, "device '{}': {}", spec.name, machine.problem);
  const auto count = static_cast<std::int64_t>(machine.devices.size());
  if (spec.cuda_ordinal >= count) {
    engine::fail(ErrorKind::kInvalidJob, "device '{}': this machine has {}, numbered from 0", spec.name,
                 counted(count, "GPU"));
  }
}

}  // namespace arbalest::jobs
