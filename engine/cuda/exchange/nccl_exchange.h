// Exchanges over NCCL. The calls are recorded in the task graphs of the learners.
//
// These communicators are not those of the all-reduce (collective.h). Two communicators of one GPU may deadlock if the
// kernels of one wait for each other on some GPUs, and those of the other on the rest. So no exchange and no all-reduce
// may be under way at the same time: the streams' events order them in the same way on every GPU (scheduler/rounds).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/cuda/exchange/gpu_exchange.h"
#include "engine/cuda/runtime/communicators.h"

namespace arbalest::engine::cuda {

class NcclExchange final : public GpuExchange {
 public:
  NcclExchange(const std::vector<int>& ordinals, process::World& world);

  int ranks() const noexcept override { return communicators_.all_ranks(); }
  // Ends the kernels that wait for other GPUs, too.
  void break_up() noexcept override { communicators_.abort(); }
  // It counts an exchange when it is recorded, and not when the recording is replayed.
  std::uint64_t received_bytes(int rank) const noexcept override { return received_[local(rank)]; }

  void gather(int rank, const float* from, float* to, std::size_t floats, cudaStream_t stream) override;
  void scatter_sums(int rank, const float* from, float* to, std::size_t floats, cudaStream_t stream) override;
  void all_to_all(int rank, const float* from, float* to, std::size_t floats, cudaStream_t stream) override;

 private:
  std::size_t local(int rank) const { return static_cast<std::size_t>(rank - communicators_.first_rank()); }
  ncclComm_t communicator(int rank) const;
  // Runs each kind of exchange once on all GPUs of this process, so that NCCL connects them.
  void connect(const std::vector<int>& ordinals);
  // Call it after each call of NCCL.
  void finish_call(int rank, std::size_t floats);

  NcclCommunicators communicators_;
  bool is_connecting_ = true;                         // its calls are in a group
  std::vector<std::atomic<std::uint64_t>> received_;  // by device
};

}  // namespace arbalest::engine::cuda
