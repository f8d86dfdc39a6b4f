// Tests what launchers say in the environment.
#include "engine/process/launch.h"

#include <map>

#include "engine/base/error.h"
#include "engine/process/srun.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::process::find_launch;
using engine::process::is_srun_without_mpi;
using engine::process::Launch;
using engine::process::Variables;

Variables variables_of(const std::map<std::string, std::string>& environment) {
  return [environment](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  };
}

std::optional<Launch> launch_of(const std::map<std::string, std::string>& environment) {
  return find_launch(variables_of(environment));
}

}  // namespace

TEST_CASE("launch: the variables of mpirun, mpiexec and srun give rank and size") {
  const std::optional<Launch> open_mpi = launch_of({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}});
  REQUIRE(open_mpi);
  CHECK(open_mpi->launcher == "mpirun of Open MPI");
  CHECK(open_mpi->rank == 3);
  CHECK(open_mpi->size == 4);

  const std::optional<Launch> mpich = launch_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  REQUIRE(mpich);
  CHECK(mpich->rank == 1);
  CHECK(mpich->size == 2);

  const std::optional<Launch> slurm = launch_of({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}});
  REQUIRE(slurm);
  CHECK(slurm->launcher == "srun");
  CHECK(slurm->size == 2);

  const std::optional<Launch> pmix = launch_of({{"PMIX_RANK", "5"}});
  REQUIRE(pmix);
  CHECK(pmix->rank == 5);
  CHECK(pmix->size == 0);
}

TEST_CASE("launch: a process that is the only one is a single process") {
  CHECK_FALSE(launch_of({}));
  CHECK_FALSE(launch_of({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  CHECK_FALSE(launch_of({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
  // A batch script of Slurm that has two tasks, before it calls srun.
  CHECK_FALSE(launch_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_ID", "7"}}));
}

TEST_CASE("launch: mpirun inside a job of Slurm counts, not the job's step") {
  const std::optional<Launch> launch = launch_of({{"OMPI_COMM_WORLD_SIZE", "8"},
                                                  {"OMPI_COMM_WORLD_RANK", "2"},
                                                  {"SLURM_STEP_NUM_TASKS", "2"},
                                                  {"SLURM_PROCID", "1"}});
  REQUIRE(launch);
  CHECK(launch->size == 8);
}

TEST_CASE("launch: srun has told MPI of the other processes only if PMIx or PMI has") {
  const std::map<std::string, std::string> srun{{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}};
  CHECK(is_srun_without_mpi(variables_of(srun)));
  for (const char* name : {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_SIZE"}) {
    std::map<std::string, std::string> told = srun;
    told[name] = "1";
    CHECK_FALSE(is_srun_without_mpi(variables_of(told)));
  }
  CHECK_FALSE(is_srun_without_mpi(variables_of({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}})));
  CHECK_FALSE(is_srun_without_mpi(variables_of({})));
}

TEST_CASE("launch: a variable that is no number is named") {
  for (const char* value : {"", "two", "-1", "2x", "99999999999"}) {
    CAPTURE(value);
    try {
      launch_of({{"OMPI_COMM_WORLD_SIZE", value}});
      FAIL("no error");
    } catch (const engine::Error& error) {
      CHECK(error.kind() == engine::ErrorKind::kUsage);
      CHECK_THAT(error.what(), ContainsSubstring("OMPI_COMM_WORLD_SIZE"));
    }
  }
}

}  // namespace arbalest::tests
