#include "engine/cuda/device/nccl.h"

#include <cstdlib>
#include <string>

#include "engine/base/error.h"
#include "engine/cuda/runtime/collective.h"

namespace arbalest::engine::cuda {

namespace {

// NCCL's sums over NVLink switches (NVLS) differ from call to call. A ring adds in the same order in every run with the
// same GPUs. NCCL reads these settings when it starts, so these initializers run before main(). Values set by the user
// are kept.
[[maybe_unused]] const int kAlgorithm = setenv("NCCL_ALGO", "Ring", /*overwrite=*/0);
[[maybe_unused]] const int kProtocol = setenv("NCCL_PROTO", "Simple", /*overwrite=*/0);

}  // namespace

void check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const std::string details = ncclGetLastError(nullptr);
  fail(ErrorKind::kPeer, "{}: {}{}{}", function_of(call), ncclGetErrorString(result), details.empty() ? "" : ": ",
       details);
}

std::unique_ptr<Collective> make_nccl_collective(const std::vector<int>& ordinals, process::World& world) {
  return std::make_unique<NcclCollective>(ordinals, world);
}

std::vector<LibraryVersion> nccl_versions() {
  int version = 0;
  ARBALEST_CUDA(ncclGetVersion(&version));
  return {{"NCCL", fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)}};
}

}  // namespace arbalest::engine::cuda
