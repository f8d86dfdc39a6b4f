// Reads from the environment what srun has told MPI.
#pragma once

#include "engine/process/launch.h"

namespace arbalest::engine::process {

// Returns whether srun has started this process as one of several, but has told MPI of the others neither by PMIx nor
// by PMI, as with --mpi=none. MPI then finds no other process, or ends the program.
bool is_srun_without_mpi(const Variables& variables);

}  // namespace arbalest::engine::process
