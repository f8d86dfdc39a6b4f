// NCCL's part of the engine: nccl.cc, or no_nccl.cc in a build without NCCL, which runs jobs on at most one GPU.
#pragma once

#include <memory>
#include <vector>

#include "engine/backends/versions.h"
#include "engine/collective.h"

namespace arbalest::engine::cuda {

// All-reduce between the GPUs of all processes of `world`, one rank each. Throws ErrorKind::kDevice in a build without
// NCCL, and as NcclCollective does (collective.h).
//   ordinals: device ordinal of each rank of this process
std::unique_ptr<Collective> make_nccl_collective(const std::vector<int>& ordinals, process::World& world);

// NCCL's version; empty in a build without NCCL.
std::vector<LibraryVersion> nccl_versions();

}  // namespace arbalest::engine::cuda
