#include "engine/process/launch.h"

#include <charconv>

#include "engine/base/error.h"
#include "engine/process/srun.h"

namespace arbalest::engine::process {

namespace {

struct LauncherVariables {
  const char* launcher;
  const char* rank;
  const char* size;  // null: the launcher does not tell it
};

constexpr const char* kSrun = "srun";

// The order matters: mpirun may run inside a job of Slurm. A batch script of Slurm has SLURM_PROCID and SLURM_NTASKS,
// but is one process; the number of tasks of a step is set by srun only.
constexpr LauncherVariables kLaunchers[] = {
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {kSrun, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE"},
    {"a launcher with PMIx", "PMIX_RANK", nullptr},
};

std::optional<int> number(const Variables& variables, const char* name) {
  const std::optional<std::string> text = name == nullptr ? std::nullopt : variables(name);
  if (!text) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0) {
    fail(ErrorKind::kUsage,
         "the environment variable {}='{}' is no number. A launcher such as mpirun sets it; unset it to run a single "
         "process",
         name, *text);
  }
  return value;
}

}  // namespace

std::optional<Launch> find_launch(const Variables& variables) {
  for (const LauncherVariables& names : kLaunchers) {
    const std::optional<int> rank = number(variables, names.rank);
    const std::optional<int> size = number(variables, names.size);
    if (names.size == nullptr ? !rank : !size) continue;
    if (size == 1) return std::nullopt;
    return Launch{names.launcher, rank.value_or(0), size.value_or(0)};
  }
  return std::nullopt;
}

bool is_srun_without_mpi(const Variables& variables) {
  const std::optional<Launch> launch = find_launch(variables);
  return launch && launch->launcher == kSrun && !variables("PMIX_RANK") && !variables("PMI_RANK");
}

}  // namespace arbalest::engine::process
