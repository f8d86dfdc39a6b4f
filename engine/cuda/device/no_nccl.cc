// A build without NCCL: one process cannot use several GPUs, and the error message says that NCCL is missing.
#include "engine/cuda/device/nccl.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

std::unique_ptr<Collective> make_nccl_collective(const std::vector<int>& ordinals) {
  fail(
      ErrorKind::kDevice,
      "this build of Arbalest has no NCCL, which joins the {} GPUs of the job; name one GPU, or install NCCL (libnccl2 "
      "and libnccl-dev, or the Python package nvidia-nccl) and build Arbalest again",
      ordinals.size());
}

std::vector<LibraryVersion> nccl_versions() { return {}; }

}  // namespace arbalest::engine::cuda
