#include "engine/cuda/collective.h"

#include "engine/cuda/stream.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

NcclCollective::NcclCollective(const std::vector<int>& ordinals) : calls_(ordinals.size()) {
  std::vector<ncclComm_t> created(ordinals.size());
  ARBALEST_CUDA(ncclCommInitAll(created.data(), static_cast<int>(ordinals.size()), ordinals.data()));
  for (ncclComm_t communicator : created) communicators_.emplace_back(communicator);
}

void NcclCollective::all_reduce_sum(Stream& stream, int rank, float* data, std::size_t elements, const char* label) {
  calls_[static_cast<std::size_t>(rank)] = {&stream, data, elements, label};
  if (++collected_ < calls_.size()) return;
  collected_ = 0;
  ARBALEST_CUDA(ncclGroupStart());
  for (std::size_t r = 0; r < calls_.size(); ++r) {
    const Call& call = calls_[r];
    as_cuda(*call.stream).submit(call.label, [&](const StreamContext& context) {
      ARBALEST_CUDA(ncclAllReduce(call.data, call.data, call.elements, ncclFloat32, ncclSum, communicators_[r].get(),
                                  context.stream));
    });
  }
  ARBALEST_CUDA(ncclGroupEnd());
}

}  // namespace arbalest::engine::cuda
