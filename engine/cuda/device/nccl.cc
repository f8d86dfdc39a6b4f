#include "engine/cuda/device/nccl.h"

#include "engine/cuda/device/collective.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

void check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  fail(ErrorKind::kPeer, "{}: {}", function_of(call), ncclGetErrorString(result));
}

std::unique_ptr<Collective> make_nccl_collective(const std::vector<int>& ordinals) {
  return std::make_unique<NcclCollective>(ordinals);
}

std::vector<LibraryVersion> nccl_versions() {
  int version = 0;
  ARBALEST_CUDA(ncclGetVersion(&version));
  return {{"NCCL", fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)}};
}

}  // namespace arbalest::engine::cuda
