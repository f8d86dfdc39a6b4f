#include "engine/cuda/device/collective.h"

#include <thread>

#include "engine/cuda/device/stream.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

// NCCL issues the calls made between its two ends as one. A group in which a call failed issues none.
class Group {
 public:
  Group() { ARBALEST_CUDA(ncclGroupStart()); }
  ~Group() {
    if (open_) static_cast<void>(ncclGroupEnd());  // the error under way says more
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
    // NCCL's "unhandled cuda error" is a GPU that has failed, as a rule: that says more.
    for (const CudaStream* stream : streams_) stream->check();
    throw;
  }
}

void NcclCollective::issue_all_reduce(std::span<const CollectivePart> parts, std::size_t elements,
                                      const char* label) const {
  Group group;  // one host thread enqueues for all ranks, and the call of a lone one would block it
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
    if (communicators_[rank].get() == nullptr) continue;  // aborted: what waited behind it goes on
    ncclResult_t problem = ncclSuccess;
    ARBALEST_CUDA(ncclCommGetAsyncError(communicators_[rank].get(), &problem));
    if (problem == ncclSuccess || problem == ncclInProgress) continue;
    fail(ErrorKind::kPeer, "the all-reduce of {} fails: {}", streams_[rank]->name(), ncclGetErrorString(problem));
  }
}

void NcclCollective::abort() noexcept {
  for (Communicator& communicator : communicators_) {
    // Frees the communicator, whatever it returns.
    if (communicator.get() != nullptr) static_cast<void>(ncclCommAbort(communicator.release()));
  }
}

}  // namespace arbalest::engine::cuda
