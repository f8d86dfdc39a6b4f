// Reads what the launcher of the processes (mpirun, mpiexec, srun) says about them in environment variables.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace arbalest::engine::process {

struct Launch {
  std::string launcher;  // "mpirun of Open MPI"
  int rank = 0;
  int size = 0;  // 0: unknown
};

// Returns the value of an environment variable, if it is set. Only cli reads the environment.
using Variables = std::function<std::optional<std::string>(const char* name)>;

// Returns nothing if this process was started by itself, or as the only one. Throws kUsage if a variable is no number.
std::optional<Launch> find_launch(const Variables& variables);

}  // namespace arbalest::engine::process
