// All-reduce between the GPUs of all processes of a job: NCCL, one rank per GPU, one communicator per process and GPU
// (two communicators of one GPU may deadlock).
//
// NCCL reports neither a failed GPU to its peers nor, between processes of one machine, a dead process. Its calls and
// kernels then wait for ever. So host threads never block in NCCL or CUDA behind an all-reduce: they poll, and at each
// poll they look at the GPUs, at the communicators and at the World, whose watchdog judges the other processes.
#pragma once

#include <nccl.h>

#include <vector>

#include "engine/collective.h"
#include "engine/cuda/device/check.h"
#include "engine/process/world.h"

namespace arbalest::engine::cuda {

class CudaStream;

// Not in check.h, because a build may lack NCCL. Throws ErrorKind::kPeer: the peers' work fails. Accepts
// ncclInProgress, which says that a call of a non-blocking communicator goes on in the background.
void check(ncclResult_t result, const char* call);

class NcclCollective final : public Collective {
 public:
  // NCCL connects the GPUs of all processes when it starts. This takes seconds; after this time it will not succeed.
  static constexpr double kConnectSeconds = 120.0;

  // `ordinals`: device ordinal of each rank of this process. The ranks are numbered in the order of the processes. All
  // processes of `world` must call it; it returns when NCCL has connected all GPUs. Throws kPeer if that takes longer
  // than `connect_seconds`, and as World's operations do.
  NcclCollective(const std::vector<int>& ordinals, process::World& world, double connect_seconds = kConnectSeconds);
  // Waits for the other processes, unless an exception ends this one.
  ~NcclCollective() override;

  int ranks() const noexcept override { return static_cast<int>(ranks_); }
  bool spans_processes() const noexcept override { return world_.size() > 1; }
  void all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) override;
  void wait(const Event& event) override;

 private:
  void create_communicators(const std::vector<int>& ordinals);
  // Polls until NCCL has connected the ranks and put the work that it was given on the streams. Until then nothing may
  // be enqueued behind the work. Throws kPeer after `seconds`.
  void wait_until_started(double seconds);
  // Throws kPeer for failures that no GPU reports, such as a broken link or a failed NCCL thread.
  bool have_started() const;
  void issue_all_reduce(std::span<const CollectivePart> parts, std::size_t elements, const char* label);
  // Throws if a GPU, a communicator or another process has failed.
  void check_all();
  // Runs a step, and gives up after an error.
  template <typename Step>
  void guarded(const Step& step);
  // Ends NCCL's part after an error. Throws the World's error instead if another process has failed.
  void give_up(const Error& error);
  void abort() noexcept;

  process::World& world_;
  const std::size_t ranks_;                 // of this process
  int all_ranks_ = 0;                       // of all processes
  std::vector<ncclComm_t> communicators_;   // by rank; empty after abort()
  std::vector<const CudaStream*> streams_;  // by rank; streams of the last all-reduce; empty before
};

}  // namespace arbalest::engine::cuda
