// NCCL: communicators of the devices of one process or of several, and sums over them (clique.h).
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/clique.h"
#include "tests/cuda_stand_in/memory.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

struct Part {
  const float* from = nullptr;
  float* to = nullptr;
  std::size_t count = 0;
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

}  // namespace

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
  std::uint64_t issued = 0;
  std::uint64_t begun = 0;                                                 // calls that have begun on its streams
  std::shared_ptr<arbalest::tests::cuda_stand_in::Background> background;  // null: all calls have been issued
};

namespace arbalest::tests::cuda_stand_in {

namespace {

constexpr const char* kKind = "communicator";
constexpr const char* kAllReduce = "ncclAllReduce";
constexpr const char* kInit = "ncclCommInitRankConfig";
constexpr const char* kUnderWay = "ncclAllReduce under way";

class Arrival final : public Execution {
 public:
  Arrival(ncclComm& communicator, const Part& part)
      : clique_(communicator.clique), aborted_(communicator.aborted), part_(part), call_(communicator.begun++) {
    if (const int error = take_injected(kUnderWay); error != 0) clique_->fail(error);
  }

  bool can_step() const override {
    if (*aborted_) return true;
    if (clique_->failure() != ncclSuccess) return false;
    return has_published_ ? clique_->can_take(call_) : clique_->can_publish(call_);
  }
  bool step() override {
    if (*aborted_) return true;
    if (!has_published_) {
      clique_->publish(call_, {part_.from, part_.count});
      has_published_ = true;
      return false;
    }
    const bool are_equal = clique_->take(call_, {part_.to, part_.count});
    if (!are_equal) violation("ncclAllReduce: the ranks come to calls of different lengths");
    return true;
  }
  bool waits_for_others() const override { return !clique_->is_of_this_thread(); }

 private:
  const std::shared_ptr<Clique> clique_;
  const std::shared_ptr<bool> aborted_;
  const Part part_;
  const std::uint64_t call_;
  bool has_published_ = false;
};

ncclResult_t enqueue_arrival(const Issued& issued) {
  auto work = std::make_shared<Work>();
  work->name = kAllReduce;
  work->uses = {issued.part.from, issued.part.to};
  work->start = [=](CUstream_st&) { return std::make_unique<Arrival>(*issued.communicator, issued.part); };
  return enqueue(*issued.stream, std::move(work), kAllReduce) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t enqueue_all(const std::vector<Issued>& calls) {
  for (const Issued& one : calls) {
    const ncclResult_t result = enqueue_arrival(one);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

void check_order(ncclComm& communicator, std::size_t count) {
  const std::uint64_t number = communicator.issued++;
  const std::size_t others = communicator.clique->issue(number, count);
  if (others == count) return;
  violation(fmt::format("ncclAllReduce: call {} of rank {} has {} elements where another rank had {}", number + 1,
                        communicator.rank, count, others));
}

ncclResult_t check_devices(ncclComm_t communicator, const Part& part, cudaStream_t handle) {
  const CUstream_st* stream = find_stream(handle, kAllReduce);
  if (stream == nullptr) return ncclInvalidArgument;
  if (stream->device != communicator->device) {
    violation(fmt::format("ncclAllReduce: rank {} is of device {} and its stream of device {}", communicator->rank,
                          communicator->device, stream->device));
    return ncclInvalidArgument;
  }
  if (part.count > Clique::kMostElements) {
    violation("ncclAllReduce: of more elements than the stand-in has room for");
    return ncclInvalidArgument;
  }
  const std::size_t bytes = part.count * sizeof(float);
  const bool inside = check_device_range(part.from, bytes, stream->device, kAllReduce) &&
                      check_device_range(part.to, bytes, stream->device, kAllReduce);
  return inside ? ncclSuccess : ncclInvalidArgument;
}

// Returns ncclInProgress until all ranks are there.
ncclResult_t connect(ncclComm& communicator) {
  if (communicator.connected || communicator.failure != ncclSuccess) return communicator.failure;
  if (!communicator.clique->is_complete()) return ncclInProgress;
  if (const int device = communicator.clique->doubled_device(); device >= 0) {
    violation(fmt::format("{}: two ranks on device {}", kInit, device));
    return communicator.failure = ncclInvalidUsage;
  }
  communicator.connected = true;
  Clique::forget(communicator.id);
  return ncclSuccess;
}

// Ends an ungrouped call, or a group, that creates communicators.
ncclResult_t connect_all(const std::vector<ncclComm_t>& communicators) {
  ncclResult_t result = ncclSuccess;
  for (ncclComm_t communicator : communicators) {
    if (!communicator->blocking) {
      result = ncclInProgress;
      continue;
    }
    if (!communicator->clique->is_of_this_thread()) {
      violation(fmt::format("{}: blocks until ranks of other threads or processes come, which may have died", kInit));
    }
    const ncclResult_t one = connect(*communicator);
    if (one == ncclInProgress) {
      violation(fmt::format("{}: waits for ever for the other ranks", kInit));
      return ncclInternalError;
    }
    if (one != ncclSuccess) return one;
  }
  return result;
}

// Issues the calls at once, or lets a non-blocking communicator issue them at a later poll.
ncclResult_t issue(std::vector<Issued> calls) {
  if (calls.empty() || calls.front().communicator->blocking) return enqueue_all(calls);
  const auto background = std::make_shared<Background>();
  background->calls = std::move(calls);
  background->polls_left = random_below(3);
  for (const Issued& one : background->calls) {
    one.communicator->background = background;
    one.stream->is_nccl_issuing = true;
  }
  return ncclInProgress;
}

void leave_background(const Background& background) {
  for (const Issued& one : background.calls) {
    one.communicator->background = nullptr;
    one.stream->is_nccl_issuing = false;
  }
}

ncclResult_t poll(ncclComm& communicator) {
  const ncclResult_t connected = connect(communicator);
  if (connected != ncclSuccess) return connected;
  if (communicator.clique->failure() != 0) return static_cast<ncclResult_t>(communicator.clique->failure());
  const std::shared_ptr<Background> background = communicator.background;
  if (background == nullptr) return ncclSuccess;
  if (background->polls_left-- > 0) return ncclInProgress;
  leave_background(*background);
  return communicator.failure = enqueue_all(background->calls);
}

// Whether a test wants ncclCommAbort to hang, as it may when a process of the same machine has died.
bool hangs_in_abort() { return std::getenv("ARBALEST_STAND_IN_HANGS_IN_ABORT") != nullptr; }

template <typename Body>
ncclResult_t nccl_call(const char* function, InCapture in_capture, const Body& body) {
  return library_call(function, in_capture, ncclUnhandledCudaError, body);
}

}  // namespace

void fail_all_reduce(int error, int after) { fail_next(kUnderWay, error, after); }

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
