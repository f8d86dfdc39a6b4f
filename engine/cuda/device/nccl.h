// What needs NCCL: linked from nccl.cc, or from no_nccl.cc in a build without it, where a job runs on one GPU at most.
#pragma once

#include <memory>
#include <vector>

#include "engine/collective.h"
#include "engine/versions.h"

namespace arbalest::engine::cuda {

// All-reduce between GPUs, one rank each. Throws ErrorKind::kDevice in a build without NCCL.
//   ordinals: of the device of each rank
std::unique_ptr<Collective> make_nccl_collective(const std::vector<int>& ordinals);

// NCCL's version; nothing in a build without it.
std::vector<LibraryVersion> nccl_versions();

}  // namespace arbalest::engine::cuda
