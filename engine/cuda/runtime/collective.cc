#include "engine/cuda/runtime/collective.h"

#include <limits>
#include <string>

#include "engine/base/error.h"
#include "engine/cuda/runtime/stream.h"

namespace arbalest::engine::cuda {

template <typename Step>
void NcclCollective::guarded(const Step& step) {
  try {
    step();
  } catch (const Error& error) {
    communicators_.give_up(error);
    throw;
  }
}

NcclCollective::NcclCollective(const std::vector<int>& ordinals, process::World& world, double connect_seconds)
    : ranks_(ordinals.size()), communicators_(ordinals, world) {
  guarded([&] { communicators_.wait_until_started(connect_seconds); });
}

std::string NcclCollective::work_of(std::size_t device) const {
  return fmt::format("the all-reduce of {}", streams_[device]->name());
}

void NcclCollective::all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) {
  ARBALEST_CHECK(parts.size() == ranks_ && communicators_.are_open());
  streams_.clear();
  for (const CollectivePart& part : parts) streams_.push_back(&as_cuda(*part.stream));
  try {
    issue_all_reduce(parts, elements, label);
    communicators_.wait_until_started(std::numeric_limits<double>::infinity(),
                                      [this](std::size_t device) { return work_of(device); });
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kOutOfMemory) throw;
    check_all();  // NCCL's "unhandled cuda error" usually means that a GPU has failed
    communicators_.give_up(error);
    throw;
  }
}

void NcclCollective::issue_all_reduce(std::span<const CollectivePart> parts, std::size_t elements, const char* label) {
  NcclGroup group;  // one host thread enqueues for all ranks; an ungrouped call would block it
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    float* const values = parts[rank].values;
    as_cuda(*parts[rank].stream).submit(label, [&](const StreamContext& context) {
      ARBALEST_CUDA(ncclAllReduce(values, values, elements, ncclFloat32, ncclSum, communicators_.at(rank),
                                  context.stream.handle));
    });
  }
  group.issue();
}

void NcclCollective::wait(const Event& event) {
  for (int polls = 0; !event.is_complete(); ++polls) {
    check_all();
    rest(polls);
  }
  guarded([&] { event.synchronize(); });
}

void NcclCollective::check_all() {
  guarded([this] {
    for (const CudaStream* stream : streams_) stream->check();
    const NcclCommunicators::Work work = [this](std::size_t device) { return work_of(device); };
    static_cast<void>(communicators_.have_started(streams_.empty() ? NcclCommunicators::Work{} : work));
    communicators_.world().check();
  });
}

}  // namespace arbalest::engine::cuda
