// NCCL: communicators of the devices of one process or of several, and sums over them (communicator.h, clique.h).
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/communicator.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

constexpr const char* kKind = "communicator";

// Calls between ncclGroupStart and ncclGroupEnd of the calling host thread.
struct Group {
  int depth = 0;
  std::vector<ncclComm_t> joins;
  std::vector<Issued> calls;
  std::vector<Issued> messages;  // by communicator: its ncclSend and ncclRecv, which must be all to all
};

Group& group() {
  thread_local Group the_group;
  return the_group;
}

// Whether a test wants ncclCommAbort to hang, as it may when a process of the same machine has died.
bool hangs_in_abort() { return std::getenv("ARBALEST_STAND_IN_HANGS_IN_ABORT") != nullptr; }

template <typename Body>
ncclResult_t nccl_call(const char* function, InCapture in_capture, const Body& body) {
  return library_call(function, in_capture, ncclUnhandledCudaError, body);
}

Part part_of(CallKind kind, const void* from, void* to, std::size_t count) {
  return {.kind = kind, .from = static_cast<const float*>(from), .to = static_cast<float*>(to), .count = count};
}

// Checks what can be checked before a call is issued.
ncclResult_t check_part(ncclComm_t communicator, const Part& part, cudaStream_t stream) {
  if (!communicator->connected || communicator->background != nullptr) {
    violation(fmt::format("{}: of a communicator whose last call is in progress", name_of(part.kind)));
    return ncclInvalidArgument;
  }
  const ncclResult_t problem = check_devices(communicator, part, stream);
  if (problem == ncclSuccess) check_order(*communicator, part);
  return problem;
}

ncclResult_t check_messages(const Issued& all_to_all) {
  const auto is_there = [](const auto* piece) { return piece != nullptr; };
  if (std::ranges::all_of(all_to_all.part.sent, is_there) && std::ranges::all_of(all_to_all.part.received, is_there)) {
    return check_part(all_to_all.communicator, all_to_all.part, all_to_all.stream);
  }
  violation("ncclSend and ncclRecv: the stand-in knows only groups in which each rank has messages for all");
  return ncclInvalidArgument;
}

ncclResult_t call_of(ncclComm_t communicator, const Part& part, cudaStream_t stream) {
  return nccl_call(name_of(part.kind), InCapture::kLegal, [&] {
    if (!is_alive(communicator, kKind, name_of(part.kind))) return ncclInvalidArgument;
    const ncclResult_t problem = check_part(communicator, part, stream);
    if (problem != ncclSuccess) return problem;
    const Issued issued{communicator, part, stream};
    if (group().depth > 0) {
      group().calls.push_back(issued);
      return ncclSuccess;
    }
    if (communicator->clique->ranks() > 1) check_group({issued});
    return issue({issued});
  });
}

// Adds a message to those of the group.
ncclResult_t message_of(ncclComm_t communicator, std::size_t count, ncclDataType_t type, int peer, cudaStream_t stream,
                        const std::function<void(Part&, std::size_t)>& set) {
  constexpr CallKind kKindOfCall = CallKind::kAllToAll;
  return nccl_call(name_of(kKindOfCall), InCapture::kLegal, [&] {
    if (!is_alive(communicator, kKind, name_of(kKindOfCall))) return ncclInvalidArgument;
    const int ranks = communicator->clique->ranks();
    if (type != ncclFloat32 || peer < 0 || peer >= ranks) return ncclInvalidArgument;
    if (group().depth == 0) {
      violation("ncclSend and ncclRecv: outside of a group, where they may wait for each other");
      return ncclInvalidUsage;
    }
    std::vector<Issued>& messages = group().messages;
    auto found = std::ranges::find(messages, communicator, &Issued::communicator);
    if (found == messages.end()) {
      Part part{.kind = kKindOfCall, .count = count};
      part.sent.resize(static_cast<std::size_t>(ranks));
      part.received.resize(static_cast<std::size_t>(ranks));
      found = messages.insert(messages.end(), Issued{communicator, std::move(part), stream});
    }
    if (found->part.count != count || found->stream != stream) {
      violation("ncclSend and ncclRecv: the stand-in knows only messages of one length on one stream");
      return ncclInvalidArgument;
    }
    set(found->part, static_cast<std::size_t>(peer));
    return ncclSuccess;
  });
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    default: return "internal error";
  }
}

const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return nccl_call("ncclGetUniqueId", InCapture::kIllegal, [&] {
    *id = {};
    const std::string name = Clique::create();
    std::ranges::copy(name, id->internal);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return nccl_call(kInit, InCapture::kIllegal, [&] {
    if (ranks < 1 || ranks > Clique::kMostRanks || rank < 0 || rank >= ranks) return ncclInvalidArgument;
    ncclComm* made = make_handle<ncclComm>(kKind);
    made->id = id.internal;
    made->rank = rank;
    made->device = this_thread().device;
    made->blocking = config == nullptr || config->blocking != 0;
    *communicator = made;
    try {
      const int number = state().machine.first_device + made->device;
      made->clique = std::make_shared<Clique>(made->id, ranks, rank, number);
    } catch (const std::runtime_error& error) {
      violation(error.what());
      return made->failure = ncclSystemError;
    }
    if (const std::string problem = made->clique->take_seat(); !problem.empty()) {
      violation(fmt::format("{}: {}", kInit, problem));
      return made->failure = ncclInvalidUsage;
    }
    if (group().depth == 0) return connect_all({made});
    group().joins.push_back(made);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  return nccl_call("ncclCommDestroy", InCapture::kIllegal, [&] {
    if (!end_handle(communicator, kKind, "ncclCommDestroy")) return ncclInvalidArgument;
    if (connect(*communicator) == ncclInProgress || communicator->background != nullptr) {
      violation("ncclCommDestroy: of a communicator that is in progress");
    }
    return ncclSuccess;
  });
}

// Must work after a device has failed, so it does not check the devices.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  {
    const Lock lock;
    if (!end_handle(communicator, kKind, "ncclCommAbort")) return ncclInvalidArgument;
    *communicator->aborted = true;
    if (communicator->background != nullptr) leave_background(*communicator->background);
  }
  while (hangs_in_abort()) std::this_thread::sleep_for(std::chrono::seconds(1));
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  return nccl_call("ncclCommGetAsyncError", InCapture::kLegal, [&] {
    if (!is_alive(communicator, kKind, "ncclCommGetAsyncError")) return ncclInvalidArgument;
    *error = poll(*communicator);
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  Group& calls = group();
  if (calls.depth == 0) return ncclInvalidUsage;
  if (--calls.depth > 0) return ncclSuccess;
  const std::vector<ncclComm_t> joins = std::exchange(calls.joins, {});
  std::vector<Issued> issued = std::exchange(calls.calls, {});
  std::vector<Issued> messages = std::exchange(calls.messages, {});
  return nccl_call("ncclGroupEnd", InCapture::kLegal, [&] {
    const ncclResult_t result = connect_all(joins);
    if (result != ncclSuccess) return result;
    for (Issued& all_to_all : messages) {
      const ncclResult_t problem = check_messages(all_to_all);
      if (problem != ncclSuccess) return problem;
      issued.push_back(std::move(all_to_all));
    }
    if (issued.empty()) return ncclSuccess;
    check_group(issued);
    return issue(std::move(issued));
  });
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
  if (type != ncclFloat32 || operation != ncclSum) return ncclInvalidArgument;
  return call_of(communicator, part_of(CallKind::kAllReduce, from, to, count), stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
  if (type != ncclFloat32) return ncclInvalidArgument;
  return call_of(communicator, part_of(CallKind::kAllGather, from, to, count), stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  if (type != ncclFloat32 || operation != ncclSum) return ncclInvalidArgument;
  return call_of(communicator, part_of(CallKind::kReduceScatter, from, to, count), stream);
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return message_of(communicator, count, type, peer, stream,
                    [&](Part& part, std::size_t at) { part.sent[at] = static_cast<const float*>(from); });
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return message_of(communicator, count, type, peer, stream,
                    [&](Part& part, std::size_t at) { part.received[at] = static_cast<float*>(to); });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
