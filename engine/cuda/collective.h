// All-reduce between the GPUs of this process: NCCL, one rank per GPU (two communicators of one GPU may deadlock).
#pragma once

#include <vector>

#include "engine/collective.h"
#include "engine/cuda/check.h"
#include "engine/cuda/handle.h"

namespace arbalest::engine::cuda {

class NcclCollective final : public Collective {
 public:
  // `ordinals`: of the device of each rank.
  explicit NcclCollective(const std::vector<int>& ordinals);

  int ranks() const noexcept override { return static_cast<int>(communicators_.size()); }
  // The ranks of one process are enqueued by one host thread, which a lone call would block: their calls are collected
  // and issued as one group with the last rank's.
  void all_reduce_sum(Stream& stream, int rank, float* data, std::size_t elements, const char* label) override;

 private:
  struct Call {
    Stream* stream = nullptr;
    float* data = nullptr;
    std::size_t elements = 0;
    const char* label = "";
  };

  std::vector<Handle<ncclComm_t, ncclCommDestroy>> communicators_;
  std::vector<Call> calls_;  // by rank, of the round under way
  std::size_t collected_ = 0;
};

}  // namespace arbalest::engine::cuda
