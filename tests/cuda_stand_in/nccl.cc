// NCCL: communicators of the devices of one process, and sums over them. A sum is computed when all ranks have reached
// it on their streams.
#include <nccl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/memory.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

struct Part {
  const float* from = nullptr;
  float* to = nullptr;
  std::size_t count = 0;
};

struct Reduction {
  std::map<int, Part> parts;  // by rank
  bool done = false;
};

// Communicators that were created together.
struct Clique {
  int ranks = 0;
  std::vector<std::size_t> issued_counts;  // elements of each call, in order, as issued by the first rank
  std::map<std::uint64_t, std::shared_ptr<Reduction>> reductions;  // by number, until all ranks have reached them
  std::vector<bool> aborted;                                       // by rank
  ncclResult_t failure = ncclSuccess;
};

struct Issued {
  ncclComm_t communicator;
  Part part;
  cudaStream_t stream;
};

// Calls between ncclGroupStart and ncclGroupEnd of the calling host thread.
struct Group {
  int depth = 0;
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
  int rank = 0;
  int device = 0;
  std::size_t issued = 0;
  std::uint64_t begun = 0;  // calls that have begun on its streams
};

namespace arbalest::tests::cuda_stand_in {

namespace {

constexpr const char* kKind = "communicator";
constexpr const char* kAllReduce = "ncclAllReduce";
constexpr const char* kUnderWay = "ncclAllReduce under way";

// Adds in the order of ranks, and all ranks get the same bits.
void add_up(Reduction& reduction) {
  const Part& first = reduction.parts.begin()->second;
  std::vector<float> sums(first.from, first.from + first.count);
  for (const auto& [rank, part] : reduction.parts) {
    if (rank == reduction.parts.begin()->first) continue;
    for (std::size_t i = 0; i < std::min(sums.size(), part.count); ++i) sums[i] += part.from[i];
  }
  for (const auto& [rank, part] : reduction.parts)
    std::copy_n(sums.begin(), std::min(sums.size(), part.count), part.to);
  reduction.done = true;
}

class Arrival final : public Execution {
 public:
  Arrival(ncclComm& communicator, const Part& part)
      : clique_(communicator.clique), rank_(static_cast<std::size_t>(communicator.rank)) {
    Clique& clique = *communicator.clique;
    if (const int error = take_injected(kUnderWay); error != 0) clique.failure = static_cast<ncclResult_t>(error);
    const std::uint64_t number = communicator.begun++;
    std::shared_ptr<Reduction>& reduction = clique.reductions[number];
    if (reduction == nullptr) reduction = std::make_shared<Reduction>();
    if (!reduction->parts.empty() && reduction->parts.begin()->second.count != part.count) {
      violation("ncclAllReduce: the ranks come to calls of different lengths");
    }
    reduction->parts[communicator.rank] = part;
    reduction_ = reduction;
    if (static_cast<int>(reduction->parts.size()) < clique.ranks || clique.failure != ncclSuccess) return;
    add_up(*reduction);
    clique.reductions.erase(number);
  }

  bool can_step() const override { return reduction_->done || clique_->aborted[rank_]; }
  bool step() override { return true; }

 private:
  std::shared_ptr<Reduction> reduction_;
  std::shared_ptr<Clique> clique_;
  std::size_t rank_;
};

ncclResult_t enqueue_arrival(const Issued& issued) {
  auto work = std::make_shared<Work>();
  work->name = kAllReduce;
  work->uses = {issued.part.from, issued.part.to};
  work->start = [=](CUstream_st&) { return std::make_unique<Arrival>(*issued.communicator, issued.part); };
  CUstream_st* stream = find_stream(issued.stream, kAllReduce);
  if (stream == nullptr) return ncclInvalidArgument;
  return enqueue(*stream, std::move(work), kAllReduce) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

void check_order(ncclComm& communicator, std::size_t count) {
  std::vector<std::size_t>& counts = communicator.clique->issued_counts;
  const std::size_t number = communicator.issued++;
  if (number == counts.size()) counts.push_back(count);
  if (counts[number] == count) return;
  violation(fmt::format("ncclAllReduce: call {} of rank {} has {} elements where another rank had {}", number + 1,
                        communicator.rank, count, counts[number]));
}

ncclResult_t check_devices(ncclComm_t communicator, const Part& part, cudaStream_t handle) {
  const CUstream_st* stream = find_stream(handle, kAllReduce);
  if (stream == nullptr) return ncclInvalidArgument;
  if (stream->device != communicator->device) {
    violation(fmt::format("ncclAllReduce: rank {} is of device {} and its stream of device {}", communicator->rank,
                          communicator->device, stream->device));
    return ncclInvalidArgument;
  }
  const std::size_t bytes = part.count * sizeof(float);
  const bool inside = check_device_range(part.from, bytes, stream->device, kAllReduce) &&
                      check_device_range(part.to, bytes, stream->device, kAllReduce);
  return inside ? ncclSuccess : ncclInvalidArgument;
}

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

ncclResult_t ncclCommInitAll(ncclComm_t* communicators, int ranks, const int* devices) {
  return nccl_call("ncclCommInitAll", InCapture::kIllegal, [&] {
    const auto clique = std::make_shared<Clique>();
    clique->ranks = ranks;
    clique->aborted.resize(static_cast<std::size_t>(ranks));
    std::vector<int> used;
    for (int rank = 0; rank < ranks; ++rank) {
      const int device = devices == nullptr ? rank : devices[rank];
      if (device < 0 || device >= static_cast<int>(state().devices.size())) return ncclInvalidArgument;
      if (std::ranges::find(used, device) != used.end()) {
        violation(fmt::format("ncclCommInitAll: two ranks on device {}", device));
        return ncclInvalidUsage;
      }
      used.push_back(device);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      communicators[rank] = make_handle<ncclComm>(kKind);
      communicators[rank]->clique = clique;
      communicators[rank]->rank = rank;
      communicators[rank]->device = used[static_cast<std::size_t>(rank)];
    }
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  return nccl_call("ncclCommDestroy", InCapture::kIllegal, [&] {
    return end_handle(communicator, kKind, "ncclCommDestroy") ? ncclSuccess : ncclInvalidArgument;
  });
}

// Must work after a device has failed, so it does not check the devices.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const std::lock_guard lock(state().mutex);
  if (!end_handle(communicator, kKind, "ncclCommAbort")) return ncclInvalidArgument;
  communicator->clique->aborted[static_cast<std::size_t>(communicator->rank)] = true;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  return nccl_call("ncclCommGetAsyncError", InCapture::kLegal, [&] {
    if (!is_alive(communicator, kKind, "ncclCommGetAsyncError")) return ncclInvalidArgument;
    *error = communicator->clique->failure;
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
  std::vector<Issued> issued;
  issued.swap(calls.calls);
  return nccl_call("ncclGroupEnd", InCapture::kLegal, [&] {
    for (const Issued& one : issued) {
      const ncclResult_t result = enqueue_arrival(one);
      if (result != ncclSuccess) return result;
    }
    return ncclSuccess;
  });
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
  return nccl_call(kAllReduce, InCapture::kLegal, [&] {
    if (!is_alive(communicator, kKind, kAllReduce)) return ncclInvalidArgument;
    if (type != ncclFloat32 || operation != ncclSum) return ncclInvalidArgument;
    const Part part{static_cast<const float*>(from), static_cast<float*>(to), count};
    const ncclResult_t problem = check_devices(communicator, part, stream);
    if (problem != ncclSuccess) return problem;
    check_order(*communicator, count);
    const Issued issued{communicator, part, stream};
    if (group().depth > 0) {
      group().calls.push_back(issued);
      return ncclSuccess;
    }
    if (communicator->clique->ranks > 1) {
      violation("ncclAllReduce: of one of the process' ranks outside of a group, where it may wait for the others");
    }
    return enqueue_arrival(issued);
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
