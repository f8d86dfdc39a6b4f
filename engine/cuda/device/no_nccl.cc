// A build without NCCL: a job cannot use several GPUs, and the error message says that NCCL is missing.
#include <string>

#include "engine/base/error.h"
#include "engine/cuda/device/nccl.h"
#include "engine/cuda/exchange/gpu_exchange.h"
#include "engine/process/world.h"

namespace arbalest::engine::cuda {

namespace {

[[noreturn]] void fail_without_nccl(const std::vector<int>& ordinals, const process::World& world) {
  const std::string gpus = world.size() > 1 ? fmt::format("the GPUs of the {} processes", world.size())
                                            : fmt::format("the {} GPUs of the job", ordinals.size());
  fail(ErrorKind::kDevice,
       "this build of Arbalest has no NCCL, which joins {}; name one GPU{}, or install NCCL (libnccl2 and libnccl-dev, "
       "or "
       "the Python package nvidia-nccl) and build Arbalest again",
       gpus, world.size() > 1 ? " and start one process" : "");
}

}  // namespace

std::unique_ptr<Collective> make_nccl_collective(const std::vector<int>& ordinals, process::World& world) {
  fail_without_nccl(ordinals, world);
}

std::shared_ptr<GpuExchange> make_nccl_exchange(const std::vector<int>& ordinals, process::World& world) {
  fail_without_nccl(ordinals, world);
}

std::vector<LibraryVersion> nccl_versions() { return {}; }

}  // namespace arbalest::engine::cuda
