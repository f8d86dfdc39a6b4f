// NCCL's communicators of this process's GPUs, one rank each, with the GPUs of all processes of a World.
//
// NCCL reports neither a failed GPU to its peers nor, between processes of one machine, a dead process. Its calls and
// kernels then wait for ever. So host threads never block in NCCL: they poll, and at each poll they look at the World,
// whose watchdog judges the other processes.
#pragma once

#include <nccl.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/cuda/runtime/check.h"
#include "engine/process/world.h"

namespace arbalest::engine::cuda {

// Not in check.h, because a build may lack NCCL. Throws ErrorKind::kPeer: the peers' work fails. Accepts
// ncclInProgress, which says that a call of a non-blocking communicator goes on in the background.
void check(ncclResult_t result, const char* call);

// NCCL has lost another process, which it does not name.
class LostConnection final : public Error {
 public:
  using Error::Error;
};

// Between ncclGroupStart and ncclGroupEnd, NCCL collects calls and issues them together. If one fails, it issues none.
class NcclGroup {
 public:
  NcclGroup();
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  void issue();

 private:
  bool open_ = true;
};

// Rests between two polls, longer after many of them.
void rest(int polls);

class NcclCommunicators {
 public:
  // `ordinals`: device ordinal of each rank of this process. The ranks are numbered in the order of the processes. All
  // processes of `world` must call it. Call wait_until_started() before anything else.
  NcclCommunicators(const std::vector<int>& ordinals, process::World& world);
  // Waits for the other processes, unless an exception ends this one.
  ~NcclCommunicators();
  NcclCommunicators(const NcclCommunicators&) = delete;
  NcclCommunicators& operator=(const NcclCommunicators&) = delete;

  process::World& world() const noexcept { return world_; }
  bool spans_processes() const noexcept { return world_.size() > 1; }
  int all_ranks() const noexcept { return all_ranks_; }
  int first_rank() const noexcept { return first_rank_; }  // of this process
  // False after abort().
  bool are_open() const noexcept { return !communicators_.empty(); }
  ncclComm_t at(std::size_t device) const { return communicators_.at(device); }

  // Names the work of a rank that fails, for errors.
  using Work = std::function<std::string(std::size_t device)>;
  // Polls until NCCL has connected the ranks and put the work that it was given on the streams. Until then nothing may
  // be enqueued behind the work. Throws kPeer after `seconds`.
  void wait_until_started(double seconds, const Work& work = {}) const;
  // Throws kPeer for failures that no GPU reports, such as a broken link or a failed NCCL thread.
  bool have_started(const Work& work = {}) const;
  // Ends NCCL's part after an error. Throws the World's error instead if another process has failed.
  void give_up(const Error& error);
  void abort() noexcept;

 private:
  process::World& world_;
  int all_ranks_ = 0;
  int first_rank_ = 0;
  std::vector<ncclComm_t> communicators_;  // empty after abort()
};

}  // namespace arbalest::engine::cuda
