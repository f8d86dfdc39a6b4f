// NCCL's part of the engine: nccl.cc, or no_nccl.cc in a build without NCCL, which runs jobs on at most one GPU.
#pragma once

#include <memory>
#include <vector>

#include "engine/collective.h"
#include "engine/versions.h"

namespace arbalest::engine::cuda {

// All-reduce between GPUs, one rank each. Throws ErrorKind::kDevice in a build without NCCL.
//   ordinals: device ordinal of each rank
std::unique_ptr<Collective> make_nccl_collective(const std::vector<int>& ordinals);

// NCCL's version; empty in a build without NCCL.
std::vector<LibraryVersion> nccl_versions();

}  // namespace arbalest::engine::cuda
