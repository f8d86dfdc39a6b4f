// All-reduce between the GPUs of this process: NCCL, one rank per GPU (two communicators of one GPU may deadlock).
// NCCL does not tell the peers of a GPU that fails: whoever waits looks at all of them, and aborts the communicators.
#pragma once

#include <nccl.h>

#include <vector>

#include "engine/collective.h"
#include "engine/cuda/device/check.h"
#include "engine/cuda/device/handle.h"

namespace arbalest::engine::cuda {

class CudaStream;

// Beside those of check.h, because a build may be without NCCL. What fails is the peers' work: ErrorKind::kPeer.
void check(ncclResult_t result, const char* call);

class NcclCollective final : public Collective {
 public:
  // `ordinals`: of the device of each rank.
  explicit NcclCollective(const std::vector<int>& ordinals);

  int ranks() const noexcept override { return static_cast<int>(communicators_.size()); }
  void all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) override;
  void wait(const Event& event) override;

 private:
  using Communicator = Handle<ncclComm_t, ncclCommDestroy>;

  void issue_all_reduce(std::span<const CollectivePart> parts, std::size_t elements, const char* label) const;
  // Between the ranks something may fail without an error of any GPU: a link, a thread of NCCL's.
  void check_communicators() const;
  void abort() noexcept;

  std::vector<Communicator> communicators_;  // by rank; null after abort()
  std::vector<const CudaStream*> streams_;   // by rank, of the last all-reduce; none before
};

}  // namespace arbalest::engine::cuda
