// Exchanges messages through the MPI module (mpi/module.h).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/process/launch.h"
#include "engine/process/operations/transport.h"

namespace arbalest::engine::process {

inline constexpr const char* kModuleFile = "libarbalest_mpi.so";

// Returns the folders that may hold the module: that of the running program, and lib/arbalest beside it.
std::vector<std::filesystem::path> module_directories();

// Loads the module and initializes MPI. The calling thread makes all calls of the transport. Blocks until all processes
// of the launch have called it. Throws kUsage if there is no module, or if MPI has not the processes of the launch;
// kPeer if MPI fails.
std::unique_ptr<Transport> open_module_transport(const Launch& launch,
                                                 const std::vector<std::filesystem::path>& directories);

}  // namespace arbalest::engine::process
