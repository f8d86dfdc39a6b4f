// Communicators of the stand-in for NCCL: how they connect, and how their sums come onto the streams of their devices.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda_stand_in/clique.h"
#include "tests/cuda_stand_in/state.h"

namespace arbalest::tests::cuda_stand_in {

enum class CallKind { kAllReduce, kAllGather, kReduceScatter, kAllToAll };
const char* name_of(CallKind kind);

// A rank's part of a call of P ranks. `count`: elements of `to`; of `from` for kAllGather; of each piece for kAllToAll.
struct Part {
  CallKind kind = CallKind::kAllReduce;
  const float* from = nullptr;
  float* to = nullptr;
  std::size_t count = 0;
  // kAllToAll, by peer.
  std::vector<const float*> sent = {};
  std::vector<float*> received = {};

  // Elements that the rank publishes.
  std::size_t published(int ranks) const {
    return kind == CallKind::kReduceScatter || kind == CallKind::kAllToAll ? static_cast<std::size_t>(ranks) * count
                                                                           : count;
  }
};

struct Issued {
  ncclComm_t communicator;
  Part part;
  cudaStream_t stream;
};

// The calls of a group of non-blocking communicators, which NCCL issues in the background.
struct Background {
  std::vector<Issued> calls;
  std::size_t polls_left = 0;
};

inline constexpr const char* kInit = "ncclCommInitRankConfig";

}  // namespace arbalest::tests::cuda_stand_in

struct ncclComm {
  std::shared_ptr<arbalest::tests::cuda_stand_in::Clique> clique;
  std::string id;
  int rank = 0;
  int device = 0;
  bool blocking = true;
  bool connected = false;
  ncclResult_t failure = ncclSuccess;  // of its own
  std::shared_ptr<bool> aborted = std::make_shared<bool>(false);
  std::set<arbalest::tests::cuda_stand_in::CallKind> connected_for = {};
  std::uint64_t issued = 0;
  std::uint64_t begun = 0;                                                 // calls that have begun on its streams
  std::shared_ptr<arbalest::tests::cuda_stand_in::Background> background;  // null: all calls have been issued
};

namespace arbalest::tests::cuda_stand_in {

// Call the functions below with the lock of the stand-in held.

// Notes violations of the rules of a call: another rank has another length, or a buffer is not on the device.
void check_order(ncclComm& communicator, const Part& part);
ncclResult_t check_devices(ncclComm_t communicator, const Part& part, cudaStream_t handle);
// NCCL connects the ranks at their first call of a kind, which waits for all of them. So one host thread that makes the
// calls of all ranks must make the first ones in a group.
void check_group(const std::vector<Issued>& calls);

// Ends an ungrouped call, or a group, that creates communicators.
ncclResult_t connect_all(const std::vector<ncclComm_t>& communicators);
// Returns ncclInProgress until all ranks are there.
ncclResult_t connect(ncclComm& communicator);

// Issues the calls at once, or lets a non-blocking communicator issue them at a later poll.
ncclResult_t issue(std::vector<Issued> calls);
void leave_background(const Background& background);
ncclResult_t poll(ncclComm& communicator);

}  // namespace arbalest::tests::cuda_stand_in
