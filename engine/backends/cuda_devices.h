// The GPUs of this machine. Defined in engine/cuda, or in engine/no_cuda for a build without CUDA.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/backends/devices.h"
#include "engine/backends/versions.h"
#include "engine/collective.h"

namespace arbalest::engine {

struct CudaDeviceInfo {
  int ordinal = 0;
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int major = 0;     // compute capability major.minor
  int minor = 0;
  std::size_t memory = 0;  // bytes
  int multiprocessors = 0;
  std::string id;  // of this GPU among all of the world, whatever its ordinal in this process
};

struct CudaMachine {
  std::vector<CudaDeviceInfo> devices;
  // Why there is no GPU: no driver, a driver that is too old, a build without CUDA; "" if there are GPUs.
  std::string problem;
};

// Never throws: a machine without a GPU is a valid machine.
CudaMachine find_cuda_devices();

// The GPU that `spec` names. Throws ErrorKind::kInvalidJob, with the reason, if this machine does not have it.
CudaDeviceInfo find_cuda_device(const DeviceSpec& spec);

// Throws as find_cuda_device does, and ErrorKind::kDevice if the GPU cannot be used.
std::unique_ptr<Device> open_cuda_device(const DeviceSpec& spec, const DeviceOptions& options);

// A collective over NCCL between the devices of all processes of `world`, one rank per device. All devices must come
// from open_cuda_device. A call of World's operations. `world` must outlive it. Throws ErrorKind::kPeer if NCCL cannot
// connect the devices, and kDevice in a build without NCCL.
std::unique_ptr<Collective> make_cuda_collective(std::span<Device* const> devices, process::World& world);

// The exchange over NCCL between the devices that compute a split model, numbered as make_cuda_collective numbers them.
// Requirements and errors are those of make_cuda_collective.
std::shared_ptr<ExchangeGroup> make_cuda_exchange(std::span<Device* const> devices, process::World& world);

std::vector<LibraryVersion> cuda_library_versions();

}  // namespace arbalest::engine
