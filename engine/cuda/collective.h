// All-reduce between the GPUs of this process: NCCL, one rank per GPU (two communicators of one GPU may deadlock).
// A GPU that fails with work enqueued leaves its peers waiting: NCCL tells them nothing, and nothing of ours aborts
// their communicators.
#pragma once

#include <nccl.h>

#include <vector>

#include "engine/collective.h"
#include "engine/cuda/check.h"
#include "engine/cuda/handle.h"

namespace arbalest::engine::cuda {

// Beside those of check.h, because a build may be without NCCL. What fails is the peers' work: ErrorKind::kPeer.
void check(ncclResult_t result, const char* call);

class NcclCollective final : public Collective {
 public:
  // `ordinals`: of the device of each rank.
  explicit NcclCollective(const std::vector<int>& ordinals);

  int ranks() const noexcept override { return static_cast<int>(communicators_.size()); }
  void all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) override;

 private:
  std::vector<Handle<ncclComm_t, ncclCommDestroy>> communicators_;
};

}  // namespace arbalest::engine::cuda
