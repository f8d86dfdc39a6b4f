// NCCL: communicators of the devices of one process or of several, and sums over them (communicator.h, clique.h).
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
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

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "internal error";
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
  return nccl_call("ncclGroupEnd", InCapture::kLegal, [&] {
    const ncclResult_t result = connect_all(joins);
    return result != ncclSuccess || issued.empty() ? result : issue(std::move(issued));
  });
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
  return nccl_call(kAllReduce, InCapture::kLegal, [&] {
    if (!is_alive(communicator, kKind, kAllReduce)) return ncclInvalidArgument;
    if (type != ncclFloat32 || operation != ncclSum) return ncclInvalidArgument;
    if (!communicator->connected || communicator->background != nullptr) {
      violation("ncclAllReduce: of a communicator whose last call is in progress");
      return ncclInvalidArgument;
    }
    const Part part{static_cast<const float*>(from), static_cast<float*>(to), count};
    const ncclResult_t problem = check_devices(communicator, part, stream);
    if (problem != ncclSuccess) return problem;
    check_order(*communicator, count);
    const Issued issued{communicator, part, stream};
    if (group().depth > 0) {
      group().calls.push_back(issued);
      return ncclSuccess;
    }
    if (communicator->clique->is_of_this_thread() && communicator->clique->ranks() > 1) {
      violation("ncclAllReduce: of one of the process' ranks outside of a group, where it may wait for the others");
    }
    return issue({issued});
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
