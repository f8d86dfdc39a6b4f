#include "engine/cuda/device/collective.h"

#include <thread>

#include "engine/cuda/device/stream.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

// Between ncclGroupStart and ncclGroupEnd, NCCL collects calls and issues them together. If one fails, it issues none.
class Group {
 public:
  Group() { ARBALEST_CUDA(ncclGroupStart()); }
  ~Group() {
    if (open_) static_cast<void>(ncclGroupEnd());  // the exception already reports the cause
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void issue() {
    open_ = false;
    ARBALEST_CUDA(ncclGroupEnd());
  }

 private:
  bool open_ = true;
};

}  // namespace

NcclCollective::NcclCollective(const std::vector<int>& ordinals) {
  std::vector<ncclComm_t> created(ordinals.size());
  ARBALEST_CUDA(ncclCommInitAll(created.data(), static_cast<int>(ordinals.size()), ordinals.data()));
  for (ncclComm_t communicator : created) communicators_.emplace_back(communicator);
}

void NcclCollective::all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) {
  ARBALEST_CHECK(parts.size() == communicators_.size() && communicators_.front().get() != nullptr);
  streams_.clear();
  for (const CollectivePart& part : parts) streams_.push_back(&as_cuda(*part.stream));
  try {
    issue_all_reduce(parts, elements, label);
  } catch (const Error&) {
    // NCCL's "unhandled cuda error" usually means that a GPU has failed; check() reports the cause.
    for (const CudaStream* stream : streams_) stream->check();
    throw;
  }
}

void NcclCollective::issue_all_reduce(std::span<const CollectivePart> parts, std::size_t elements,
                                      const char* label) const {
  Group group;  // one host thread enqueues for all ranks; an ungrouped call would block it
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    float* const values = parts[rank].values;
    as_cuda(*parts[rank].stream).submit(label, [&](const StreamContext& context) {
      ARBALEST_CUDA(
          ncclAllReduce(values, values, elements, ncclFloat32, ncclSum, communicators_[rank].get(), context.stream));
    });
  }
  group.issue();
}

void NcclCollective::wait(const Event& event) {
  while (!event.is_complete()) {
    try {
      for (const CudaStream* stream : streams_) stream->check();
      check_communicators();
    } catch (...) {
      abort();
      throw;
    }
    std::this_thread::yield();
  }
  event.synchronize();
}

void NcclCollective::check_communicators() const {
  for (std::size_t rank = 0; rank < communicators_.size(); ++rank) {
    if (communicators_[rank].get() == nullptr) continue;  // aborted: streams no longer wait for it
    ncclResult_t problem = ncclSuccess;
    ARBALEST_CUDA(ncclCommGetAsyncError(communicators_[rank].get(), &problem));
    if (problem == ncclSuccess || problem == ncclInProgress) continue;
    fail(ErrorKind::kPeer, "the all-reduce of {} fails: {}", streams_[rank]->name(), ncclGetErrorString(problem));
  }
}

void NcclCollective::abort() noexcept {
  for (Communicator& communicator : communicators_) {
    // ncclCommAbort frees the communicator even if it returns an error.
    if (communicator.get() != nullptr) static_cast<void>(ncclCommAbort(communicator.release()));
  }
}

}  // namespace arbalest::engine::cuda
