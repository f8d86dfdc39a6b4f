#include "tests/cuda_stand_in/communicator.h"

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/memory.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

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

}  // namespace

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
