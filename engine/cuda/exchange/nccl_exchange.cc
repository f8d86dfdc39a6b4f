#include "engine/cuda/exchange/nccl_exchange.h"

#include <limits>

#include "engine/base/error.h"
#include "engine/cuda/runtime/collective.h"
#include "engine/cuda/runtime/handle.h"
#include "engine/cuda/runtime/memory.h"

namespace arbalest::engine::cuda {

NcclExchange::NcclExchange(const std::vector<int>& ordinals, process::World& world)
    : communicators_(ordinals, world), received_(ordinals.size()) {
  try {
    communicators_.wait_until_started(NcclCollective::kConnectSeconds);
    connect(ordinals);
    is_connecting_ = false;
  } catch (const Error& error) {
    communicators_.give_up(error);
    throw;
  }
}

// NCCL connects two GPUs at their first exchange of a kind, and its call then waits for the other ranks. One host
// thread records the ranks of this process one after the other, so it must not wait there.
void NcclExchange::connect(const std::vector<int>& ordinals) {
  const auto all = static_cast<std::size_t>(ranks());
  std::vector<Buffer> buffers;
  std::vector<Handle<cudaStream_t, cudaStreamDestroy>> streams(ordinals.size());
  for (std::size_t d = 0; d < ordinals.size(); ++d) {
    ARBALEST_CUDA(cudaSetDevice(ordinals[d]));
    buffers.push_back(allocate_device(2 * all * sizeof(float)));
    ARBALEST_CUDA(cudaStreamCreateWithFlags(streams[d].put(), cudaStreamNonBlocking));
  }
  using Exchange = void (NcclExchange::*)(int, const float*, float*, std::size_t, cudaStream_t);
  for (const Exchange exchange : {&NcclExchange::gather, &NcclExchange::scatter_sums, &NcclExchange::all_to_all}) {
    NcclGroup group;
    for (std::size_t d = 0; d < ordinals.size(); ++d) {
      ARBALEST_CUDA(cudaSetDevice(ordinals[d]));
      const int rank = communicators_.first_rank() + static_cast<int>(d);
      (this->*exchange)(rank, buffers[d].as<float>(), buffers[d].as<float>() + all, 1, streams[d].get());
    }
    group.issue();
    communicators_.wait_until_started(NcclCollective::kConnectSeconds);
  }
  for (std::size_t d = 0; d < ordinals.size(); ++d) {
    ARBALEST_CUDA(cudaSetDevice(ordinals[d]));
    ARBALEST_CUDA(cudaStreamSynchronize(streams[d].get()));
    received_[d] = 0;
  }
}

ncclComm_t NcclExchange::communicator(int rank) const {
  if (!communicators_.are_open()) fail(ErrorKind::kPeer, "another device of the all-gather or all-to-all has failed");
  return communicators_.at(local(rank));
}

void NcclExchange::finish_call(int rank, std::size_t floats) {
  if (!is_connecting_) {
    communicators_.wait_until_started(std::numeric_limits<double>::infinity(), [this](std::size_t device) {
      return fmt::format("the exchange of rank {}", communicators_.first_rank() + static_cast<int>(device));
    });
  }
  received_[local(rank)] += floats * sizeof(float) * static_cast<std::size_t>(ranks() - 1);
}

void NcclExchange::gather(int rank, const float* from, float* to, std::size_t floats, cudaStream_t stream) {
  ARBALEST_CUDA(ncclAllGather(from, to, floats, ncclFloat32, communicator(rank), stream));
  finish_call(rank, floats);
}

void NcclExchange::scatter_sums(int rank, const float* from, float* to, std::size_t floats, cudaStream_t stream) {
  ARBALEST_CUDA(ncclReduceScatter(from, to, floats, ncclFloat32, ncclSum, communicator(rank), stream));
  finish_call(rank, floats);
}

void NcclExchange::all_to_all(int rank, const float* from, float* to, std::size_t floats, cudaStream_t stream) {
  NcclGroup group;
  for (int peer = 0; peer < ranks(); ++peer) {
    const std::size_t at = static_cast<std::size_t>(peer) * floats;
    ARBALEST_CUDA(ncclSend(from + at, floats, ncclFloat32, peer, communicator(rank), stream));
    ARBALEST_CUDA(ncclRecv(to + at, floats, ncclFloat32, peer, communicator(rank), stream));
  }
  group.issue();
  finish_call(rank, floats);
}

std::shared_ptr<GpuExchange> make_nccl_exchange(const std::vector<int>& ordinals, process::World& world) {
  return std::make_shared<NcclExchange>(ordinals, world);
}

}  // namespace arbalest::engine::cuda
