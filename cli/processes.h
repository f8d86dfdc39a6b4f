// Runs a command in all processes that a launcher such as mpirun has started.
#pragma once

#include <functional>
#include <string>

#include "engine/process/world.h"

namespace arbalest::cli {

// Runs `body` in this process, and returns its exit code, once all processes have ended. If one of several processes
// fails, it prints the error with its rank, all end, and this function does not return. Errors of a single process, and
// of the start of MPI, are thrown.
int run_in_processes(const std::function<int(engine::process::World&)>& body);

// Ends this process with exit code 2 if it is one of several: for commands that run in one. Rank 0 says why.
void require_one_process(const std::string& command);

}  // namespace arbalest::cli
