// Exchanges between the GPUs that compute a split model. A build without NCCL has none.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/ops/exchange_group.h"
#include "engine/process/world.h"

namespace arbalest::engine::cuda {

// The functions enqueue one rank's part of an exchange on a stream of its GPU. All ranks must enqueue the same
// exchanges in the same order. They throw kPeer and kDevice.
class GpuExchange : public ExchangeGroup {
 public:
  // to [ranks, floats]: what each rank has in from [floats].
  virtual void gather(int rank, const float* from, float* to, std::size_t floats, cudaStream_t stream) = 0;
  // to [floats]: the sum over ranks of from [ranks, floats], at the own rank.
  virtual void scatter_sums(int rank, const float* from, float* to, std::size_t floats, cudaStream_t stream) = 0;
  // to [ranks, floats]: what each rank has in from [ranks, floats], at the own rank.
  virtual void all_to_all(int rank, const float* from, float* to, std::size_t floats, cudaStream_t stream) = 0;
};

// `ordinals`: device ordinal of each rank of this process. A call of World's operations; `world` must outlive the
// group. Throws ErrorKind::kDevice in a build without NCCL, and as NcclCollective does.
std::shared_ptr<GpuExchange> make_nccl_exchange(const std::vector<int>& ordinals, process::World& world);

}  // namespace arbalest::engine::cuda
