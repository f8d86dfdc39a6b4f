#include "tests/cuda_stand_in/communicator.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/memory.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

constexpr const char* kUnderWay = "ncclAllReduce under way";

std::vector<float> elements_of(const Part& part, int ranks) {
  if (part.kind != CallKind::kAllToAll) return {part.from, part.from + part.published(ranks)};
  std::vector<float> elements;
  for (const float* piece : part.sent) elements.insert(elements.end(), piece, piece + part.count);
  return elements;
}

// Takes what rank `own` needs of `rank`.
void read_elements(const Part& part, int own, int rank, const float* elements) {
  const auto from_rank = static_cast<std::size_t>(rank);
  const float* const piece = elements + static_cast<std::size_t>(own) * part.count;
  switch (part.kind) {
    case CallKind::kAllGather: std::copy_n(elements, part.count, part.to + from_rank * part.count); return;
    case CallKind::kAllToAll: std::copy_n(piece, part.count, part.received[from_rank]); return;
    case CallKind::kAllReduce:
    case CallKind::kReduceScatter: break;
  }
  const float* const addends = part.kind == CallKind::kAllReduce ? elements : piece;
  for (std::size_t i = 0; i < part.count; ++i) part.to[i] = rank == 0 ? addends[i] : part.to[i] + addends[i];
}

class Arrival final : public Execution {
 public:
  Arrival(ncclComm& communicator, const Part& part)
      : clique_(communicator.clique),
        aborted_(communicator.aborted),
        rank_(communicator.rank),
        part_(part),
        call_(communicator.begun++) {
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
      clique_->publish(call_, elements_of(part_, clique_->ranks()));
      has_published_ = true;
      return false;
    }
    const bool are_equal = clique_->take(call_, part_.published(clique_->ranks()), [this](int rank, const float* from) {
      read_elements(part_, rank_, rank, from);
    });
    if (!are_equal) violation(fmt::format("{}: the ranks come to calls of different lengths", name_of(part_.kind)));
    return true;
  }
  bool waits_for_others() const override { return !clique_->is_of_this_thread(); }

 private:
  const std::shared_ptr<Clique> clique_;
  const std::shared_ptr<bool> aborted_;
  const int rank_;
  const Part part_;
  const std::uint64_t call_;
  bool has_published_ = false;
};

ncclResult_t enqueue_arrival(const Issued& issued) {
  auto work = std::make_shared<Work>();
  work->name = name_of(issued.part.kind);
  work->uses = {issued.part.sent.begin(), issued.part.sent.end()};
  work->uses.insert(work->uses.end(), issued.part.received.begin(), issued.part.received.end());
  if (issued.part.kind != CallKind::kAllToAll) work->uses = {issued.part.from, issued.part.to};
  work->start = [=](CUstream_st&) { return std::make_unique<Arrival>(*issued.communicator, issued.part); };
  const cudaError_t result = enqueue(*issued.stream, std::move(work), name_of(issued.part.kind));
  return result == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t enqueue_all(const std::vector<Issued>& calls) {
  for (const Issued& one : calls) {
    const ncclResult_t result = enqueue_arrival(one);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

}  // namespace

const char* name_of(CallKind kind) {
  switch (kind) {
    case CallKind::kAllReduce: return "ncclAllReduce";
    case CallKind::kAllGather: return "ncclAllGather";
    case CallKind::kReduceScatter: return "ncclReduceScatter";
    case CallKind::kAllToAll: break;
  }
  return "ncclSend and ncclRecv";
}

void check_order(ncclComm& communicator, const Part& part) {
  const std::uint64_t number = communicator.issued++;
  const std::size_t count = part.published(communicator.clique->ranks());
  const std::size_t others = communicator.clique->issue(number, count);
  if (others == count) return;
  violation(fmt::format("{}: call {} of rank {} has {} elements where another rank had {}", name_of(part.kind),
                        number + 1, communicator.rank, count, others));
}

ncclResult_t check_devices(ncclComm_t communicator, const Part& part, cudaStream_t handle) {
  const char* const name = name_of(part.kind);
  const CUstream_st* stream = find_stream(handle, name);
  if (stream == nullptr) return ncclInvalidArgument;
  if (stream->device != communicator->device) {
    violation(fmt::format("{}: rank {} is of device {} and its stream of device {}", name, communicator->rank,
                          communicator->device, stream->device));
    return ncclInvalidArgument;
  }
  const int ranks = communicator->clique->ranks();
  if (part.published(ranks) > Clique::kMostElements) {
    violation(fmt::format("{}: of more elements than the stand-in has room for", name));
    return ncclInvalidArgument;
  }
  const auto is_inside = [&](const float* values, std::size_t count) {
    return check_device_range(values, count * sizeof(float), stream->device, name);
  };
  bool inside = true;
  for (const float* piece : part.sent) inside = is_inside(piece, part.count) && inside;
  for (const float* piece : part.received) inside = is_inside(piece, part.count) && inside;
  if (part.kind != CallKind::kAllToAll) {
    const std::size_t taken =
        part.kind == CallKind::kAllGather ? static_cast<std::size_t>(ranks) * part.count : part.count;
    inside = is_inside(part.from, part.published(ranks)) && is_inside(part.to, taken);
  }
  return inside ? ncclSuccess : ncclInvalidArgument;
}

void check_group(const std::vector<Issued>& calls) {
  for (const Issued& call : calls) {
    ncclComm& communicator = *call.communicator;
    const CallKind kind = call.part.kind;
    if (!communicator.clique->is_of_this_thread()) continue;
    const auto together = std::ranges::count_if(calls, [&](const Issued& other) {
      return other.part.kind == kind && other.communicator->id == communicator.id;
    });
    if (together == communicator.clique->ranks()) {
      communicator.connected_for.insert(kind);
    } else if (kind == CallKind::kAllReduce || !communicator.connected_for.contains(kind)) {
      violation(fmt::format("{}: of one of the process' ranks outside of a group, where it may wait for the others",
                            name_of(kind)));
    }
  }
}

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

void fail_all_reduce(int error, int after) { fail_next(kUnderWay, error, after); }

}  // namespace arbalest::tests::cuda_stand_in
