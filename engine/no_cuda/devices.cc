// The GPU functions of a build without CUDA: there are no GPUs, and the message says why.
#include "engine/backends/cuda_devices.h"
#include "engine/base/error.h"

namespace arbalest::engine {

namespace {

constexpr const char* kProblem = "this build of Arbalest has no CUDA; use devices: \"cpu\"";

}  // namespace

CudaMachine find_cuda_devices() { return {{}, kProblem}; }

std::unique_ptr<Device> open_cuda_device(const DeviceSpec& spec, const DeviceOptions& /*options*/) {
  fail(ErrorKind::kDevice, "device '{}': {}", spec.name, kProblem);
}

std::unique_ptr<Collective> make_cuda_collective(std::span<Device* const> /*devices*/, process::World& /*world*/) {
  fail(ErrorKind::kDevice, "{}", kProblem);
}

std::shared_ptr<ExchangeGroup> make_cuda_exchange(std::span<Device* const> /*devices*/, process::World& /*world*/) {
  fail(ErrorKind::kDevice, "{}", kProblem);
}

std::vector<LibraryVersion> cuda_library_versions() { return {}; }

}  // namespace arbalest::engine
