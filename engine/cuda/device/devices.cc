#include <cstdlib>

#include "engine/backends/cuda_devices.h"
#include "engine/base/error.h"
#include "engine/cuda/device/device.h"
#include "engine/cuda/device/nccl.h"
#include "engine/cuda/exchange/gpu_exchange.h"
#include "engine/cuda/runtime/check.h"

namespace arbalest::engine {

namespace {

// Streams beyond the number of hardware queues share a queue, and a stream that waits for an event blocks its whole
// queue. CUDA uses 8 queues by default and reads the setting when it starts. So this initializer runs before main() in
// every program with the CUDA device. A value set by the user is kept.
[[maybe_unused]] const int kHardwareQueues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);

// 12040 -> "12.4"
std::string dotted(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// The oldest driver that runs programs of this version's major release ("Minor Version Compatibility" in NVIDIA's CUDA
// Compatibility guide).
const char* oldest_driver(int runtime) { return runtime >= 13000 ? "580" : "525"; }

std::string problem_of(cudaError_t result) {
  int driver = 0;
  int runtime = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));  // 0 without a driver
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  if (driver == 0) return "no NVIDIA driver is loaded on this machine; use devices: \"cpu\"";
  if (result == cudaErrorInsufficientDriver) {
    return fmt::format("the NVIDIA driver supports CUDA {} and this build needs {}; install driver {} or newer",
                       dotted(driver), dotted(runtime), oldest_driver(runtime));
  }
  if (result == cudaErrorNoDevice) return "this machine has no GPU; use devices: \"cpu\"";
  return cudaGetErrorString(result);
}

}  // namespace

CudaMachine find_cuda_devices() {
  CudaMachine machine;
  int count = 0;
  cudaError_t result = cudaGetDeviceCount(&count);
  for (int ordinal = 0; result == cudaSuccess && ordinal < count; ++ordinal) {
    cudaDeviceProp properties{};
    result = cudaGetDeviceProperties(&properties, ordinal);
    machine.devices.push_back({ordinal, properties.name, properties.major, properties.minor, properties.totalGlobalMem,
                               properties.multiProcessorCount,
                               std::string(properties.uuid.bytes, sizeof properties.uuid.bytes)});
  }
  if (result == cudaSuccess && count > 0) return machine;
  static_cast<void>(cudaGetLastError());  // clears the error for later calls
  return {{}, problem_of(result == cudaSuccess ? cudaErrorNoDevice : result)};
}

std::unique_ptr<Device> open_cuda_device(const DeviceSpec& spec, const DeviceOptions& options) {
  return std::make_unique<cuda::CudaDevice>(spec, options);
}

namespace {

std::vector<int> ordinals_of(std::span<Device* const> devices) {
  std::vector<int> ordinals;
  for (Device* device : devices) ordinals.push_back(static_cast<cuda::CudaDevice&>(*device).ordinal());
  return ordinals;
}

}  // namespace

std::unique_ptr<Collective> make_cuda_collective(std::span<Device* const> devices, process::World& world) {
  return cuda::make_nccl_collective(ordinals_of(devices), world);
}

std::shared_ptr<ExchangeGroup> make_cuda_exchange(std::span<Device* const> devices, process::World& world) {
  return cuda::make_nccl_exchange(ordinals_of(devices), world);
}

std::vector<LibraryVersion> cuda_library_versions() {
  int runtime = 0;
  static_cast<void>(cudaRuntimeGetVersion(&runtime));  // cannot fail
  const auto cudnn = static_cast<int>(cudnnGetVersion());
  std::vector<LibraryVersion> versions{
      {"CUDA runtime", dotted(runtime)},
      {"cuDNN", fmt::format("{}.{}.{}", cudnn / 10000, cudnn / 100 % 100, cudnn % 100)}};
  for (LibraryVersion& version : cuda::nccl_versions()) versions.push_back(std::move(version));
  return versions;
}

}  // namespace arbalest::engine
