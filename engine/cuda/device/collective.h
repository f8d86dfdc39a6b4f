// All-reduce between the GPUs of this process: NCCL, one rank per GPU (two communicators of one GPU may deadlock). NCCL
// does not report a failed GPU to its peers, so a waiting host thread checks all GPUs and aborts the communicators.
#pragma once

#include <nccl.h>

#include <vector>

#include "engine/collective.h"
#include "engine/cuda/device/check.h"
#include "engine/cuda/device/handle.h"

namespace arbalest::engine::cuda {

class CudaStream;

// Not in check.h, because a build may lack NCCL. Throws ErrorKind::kPeer: the peers' work fails.
void check(ncclResult_t result, const char* call);

class NcclCollective final : public Collective {
 public:
  // `ordinals`: device ordinal of each rank.
  explicit NcclCollective(const std::vector<int>& ordinals);

  int ranks() const noexcept override { return static_cast<int>(communicators_.size()); }
  void all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) override;
  void wait(const Event& event) override;

 private:
  using Communicator = Handle<ncclComm_t, ncclCommDestroy>;

  void issue_all_reduce(std::span<const CollectivePart> parts, std::size_t elements, const char* label) const;
  // Detects failures that no GPU reports, such as a broken link or a failed NCCL thread.
  void check_communicators() const;
  void abort() noexcept;

  std::vector<Communicator> communicators_;  // by rank; null after abort()
  std::vector<const CudaStream*> streams_;   // by rank; streams of the last all-reduce; empty before
};

}  // namespace arbalest::engine::cuda
