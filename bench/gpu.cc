#include "bench/gpu.h"

#include <cstdlib>

#include <fmt/format.h>

#include "engine/cuda_devices.h"

namespace arbalest::bench {

namespace {

constexpr int kSkipped = 4;  // as tests/support/skip.h has it

}  // namespace

std::string gpu_or_skip(const std::string& device) {
  const engine::DeviceSpec spec = engine::parse_device(device);
  const engine::CudaMachine machine = engine::find_cuda_devices();
  for (const engine::CudaDeviceInfo& gpu : machine.devices) {
    if (gpu.ordinal == spec.cuda_ordinal) return gpu.name;
  }
  fmt::print(stderr, "skipped: there is no GPU '{}'{}{}\n", device, machine.problem.empty() ? "" : ": ",
             machine.problem);
  std::exit(kSkipped);
}

}  // namespace arbalest::bench
