// All-reduce between the GPUs of all processes of a job: NCCL, one rank per GPU (communicators.h).
#pragma once

#include <vector>

#include "engine/collective.h"
#include "engine/cuda/runtime/communicators.h"

namespace arbalest::engine::cuda {

class CudaStream;

class NcclCollective final : public Collective {
 public:
  // NCCL connects the GPUs of all processes when it starts. This takes seconds; after this time it will not succeed.
  static constexpr double kConnectSeconds = 120.0;

  // Takes the arguments of NcclCommunicators. Returns when NCCL has connected all GPUs. Throws kPeer if that takes
  // longer than `connect_seconds`, and as World's operations do.
  NcclCollective(const std::vector<int>& ordinals, process::World& world, double connect_seconds = kConnectSeconds);

  int ranks() const noexcept override { return static_cast<int>(ranks_); }
  bool spans_processes() const noexcept override { return communicators_.spans_processes(); }
  void all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) override;
  void wait(const Event& event) override;

 private:
  std::string work_of(std::size_t device) const;
  void issue_all_reduce(std::span<const CollectivePart> parts, std::size_t elements, const char* label);
  // Throws if a GPU, a communicator or another process has failed.
  void check_all();
  // Runs a step, and gives up after an error.
  template <typename Step>
  void guarded(const Step& step);

  const std::size_t ranks_;  // of this process
  NcclCommunicators communicators_;
  std::vector<const CudaStream*> streams_;  // by rank; streams of the last all-reduce; empty before
};

}  // namespace arbalest::engine::cuda
