// The hashes of the central model's copies on the devices of all processes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/process/world.h"
#include "sma/copy_comparison.h"

namespace arbalest::scheduler {

struct DeviceCopies {
  std::vector<std::string> devices;  // names; of several processes with their rank and host
  sma::CopyHashes hashes;            // by device
  bool has_diverged = false;         // whether any process has found a divergence
};

// Puts together what each process knows of its own devices, in order of ranks. `has_diverged`: whether this process
// has found a divergence. A call of World's operations.
DeviceCopies copies_of_all(engine::process::World& world, std::span<const std::string> devices,
                           const sma::CopyHashes& hashes, bool has_diverged);

}  // namespace arbalest::scheduler
