// Runs a program of several processes under mpirun. fault_matrix.py runs one with many faults. The limits of ctest end
// a test that hangs.
#include <csignal>
#include <cstdlib>

#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/subprocess.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;

// `variables` are the variables of the environment that a launcher would set.
Completed run_alone(const std::vector<std::string>& arguments, std::vector<std::string> variables,
                    const fs::path& directory) {
  std::vector<std::string> command{ARBALEST_MPI_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  variables.emplace_back("HOME=" + directory.string());
  variables.emplace_back("PATH=/usr/bin:/bin");  // a single process of Open MPI starts a daemon
  variables.emplace_back("ASAN_OPTIONS=detect_leaks=0");
  return Subprocess(command, variables, directory).wait();
}

class Mpirun {
 public:
  Mpirun() {
    const std::string program = ARBALEST_MPIRUN;
    if (!ARBALEST_HAS_MPI || program.empty()) skip_test("Arbalest was built without MPI");
#if defined(__SANITIZE_THREAD__)
    skip_test("ThreadSanitizer does not see how MPI synchronizes");
#endif
    program_ = program;
    const std::string version = run_program({program_, "--version"}).out;
    is_open_mpi_ = version.find("Open MPI") != std::string::npos || version.find("OpenRTE") != std::string::npos;
  }

  bool is_open_mpi() const { return is_open_mpi_; }

  // `options` are those of mpirun.
  Completed run(int processes, const std::vector<std::string>& arguments, const std::vector<std::string>& options = {},
                const std::string& module_directory = ARBALEST_MODULE_DIRECTORY) const {
    std::vector<std::string> command{program_, "-np", std::to_string(processes)};
    if (is_open_mpi_) {
      for (const char* option : {"--allow-run-as-root", "--oversubscribe", "--bind-to", "none"}) {
        command.emplace_back(option);
      }
    }
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {ARBALEST_MPI_PROGRAM, module_directory});
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_program(command);
  }

  const fs::path& directory() const { return directory_.path(); }

 private:
  Completed run_program(const std::vector<std::string>& command) const {
    const std::vector<std::string> environment{"PATH=/usr/bin:/bin", "HOME=" + directory_.path().string(),
                                               "ASAN_OPTIONS=detect_leaks=0",  // MPI's modules are unloaded at the end
                                               "OMPI_MCA_orte_base_help_aggregate=0"};
    return Subprocess(command, environment, directory_.path()).wait();
  }

  TemporaryDirectory directory_;
  std::string program_;
  bool is_open_mpi_ = false;
};

// MPICH's launcher combines the exit codes and signals of all processes.
void check_exit_code(const Mpirun& mpirun, const Completed& done, int exit_code) {
  if (mpirun.is_open_mpi()) {
    CHECK(done.exit_code == exit_code);
  } else {
    CHECK(done.exit_code != 0);
  }
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("mpi: 1 to 4 processes exchange bytes, values, flags and sums") {
  const Mpirun mpirun;
  for (const int processes : {1, 2, 3, 4}) {
    const Completed done = mpirun.run(processes, {"check"});
    INFO(done.out << done.err);
    CHECK(done.exit_code == 0);
    for (int rank = 0; rank < processes; ++rank) {
      CHECK_THAT(done.out, ContainsSubstring(fmt::format("rank {0} of {1}, local {0} of {1}: right", rank, processes)));
    }
  }
}

TEST_CASE("mpi: the survivors name a stopped rank and exit with 8") {
  const Mpirun mpirun;
  const Completed done = mpirun.run(3, {"rounds", std::to_string(SIGSTOP), "0", "5"});
  INFO(done.out << done.err);
  check_exit_code(mpirun, done, 8);
  CHECK(count(done.err, "arbalest: error: rank 0 on host") == 2);
  CHECK(count(done.err,
              "(training). Look at its output and at its host, and start the run again, from its last checkpoint if it "
              "has ") == 2);
}

TEST_CASE("mpi: mpirun ends the others when a rank is killed") {
  const Mpirun mpirun;
  const Completed done = mpirun.run(3, {"rounds", std::to_string(SIGKILL), "1", "3"});
  INFO(done.out << done.err);
  CHECK(done.exit_code != 0);
}

TEST_CASE("mpi: survivors that compute are ended, too") {
  const Mpirun mpirun;
  const Completed done = mpirun.run(2, {"idle", std::to_string(SIGSTOP), "1"});
  INFO(done.out << done.err);
  check_exit_code(mpirun, done, 8);
  CHECK_THAT(done.err, ContainsSubstring("arbalest: error: rank 1 on host"));
}

TEST_CASE("mpi: a rank that is stopped at the very end is named") {
  const Mpirun mpirun;
  const Completed done = mpirun.run(3, {"end", std::to_string(SIGSTOP), "1"});
  INFO(done.out << done.err);
  check_exit_code(mpirun, done, 8);
  CHECK(count(done.err, "arbalest: error: rank 1 on host") == 2);
}

TEST_CASE("mpi: the error of one rank ends all with its exit code") {
  const Mpirun mpirun;
  const Completed done = mpirun.run(3, {"fail", "2"});
  INFO(done.out << done.err);
  check_exit_code(mpirun, done, 2);
  CHECK_THAT(done.err, ContainsSubstring("an error of its own"));
}

TEST_CASE("mpi: an error of one rank ends all with its exit code even if its program is slow to end") {
  const Mpirun mpirun;
  const Completed done = mpirun.run(3, {"late", "1"});
  INFO(done.out << done.err);
  check_exit_code(mpirun, done, 7);
  CHECK_THAT(done.err, ContainsSubstring("arbalest: error: the loss is not finite"));
  CHECK_THAT(done.err, ContainsSubstring("arbalest: error: rank 1 on host"));
}

TEST_CASE("mpi: a launch without the module is an error of usage, never many lonely ranks") {
  const Mpirun mpirun;
  const Completed done = mpirun.run(2, {"check"}, {}, mpirun.directory());
  INFO(done.out << done.err);
  CHECK(done.exit_code == 2);
  CHECK_THAT(done.err, ContainsSubstring("Arbalest was built without MPI"));
  CHECK(done.out.find("right") == std::string::npos);
}

TEST_CASE("mpi: a launcher of another MPI library is an error of usage") {
  const Mpirun mpirun;
  const Completed done =
      run_alone({ARBALEST_MODULE_DIRECTORY, "check"}, {"PMI_RANK=0", "PMI_SIZE=2"}, mpirun.directory());
  INFO(done.out << done.err);
  CHECK(done.exit_code == 2);
  CHECK_THAT(done.err, ContainsSubstring("mpiexec has started 2 processes, but MPI"));
}

TEST_CASE("mpi: a missing or damaged module is an error of usage") {
  const TemporaryDirectory directory;
  const std::vector<std::string> variables{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"};
  const Completed missing = run_alone({directory.path(), "check"}, variables, directory.path());
  CHECK(missing.exit_code == 2);
  CHECK_THAT(missing.err,
             ContainsSubstring("this process was started by mpirun of Open MPI as rank 0, but Arbalest was "
                               "built without MPI: there is no libarbalest_mpi.so in " +
                               directory.path().string()));
  write_text(directory / "libarbalest_mpi.so", "no library");
  const Completed damaged = run_alone({directory.path(), "check"}, variables, directory.path());
  CHECK(damaged.exit_code == 2);
  CHECK_THAT(damaged.err, ContainsSubstring("the MPI module cannot be loaded"));
}

TEST_CASE("mpi: a process whose MPI does not start ends itself") {
  const TemporaryDirectory directory;
  const Completed done = run_alone({"no module", "no-start"}, {}, directory.path());
  INFO(done.out << done.err);
  CHECK(done.exit_code == 8);
  CHECK_THAT(done.err, ContainsSubstring("arbalest: error: MPI has not started within 0.2 s"));
}

TEST_CASE("mpi: a process whose owner is busy ends with its own error and exit code") {
  const TemporaryDirectory directory;
  const Completed done = run_alone({"no module", "busy"}, {}, directory.path());
  INFO(done.out << done.err);
  CHECK(done.exit_code == 7);
  CHECK(count(done.err, "arbalest: error: the loss is not finite") == 1);
}

TEST_CASE("mpi: an abort while the communication ends is not lost") {
  const TemporaryDirectory directory;
  for (const int count : {0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987}) {
    const Completed done = run_alone({"no module", "leave", std::to_string(count)}, {}, directory.path());
    INFO(count << done.out << done.err);
    CHECK(done.exit_code == 7);
  }
}

TEST_CASE("mpi: a process whose MPI cannot end it ends itself") {
  const TemporaryDirectory directory;
  const Completed done = run_alone({"no module", "silent"}, {}, directory.path());
  INFO(done.out << done.err);
  CHECK(done.exit_code == 8);
  CHECK(count(done.err, "arbalest: error: rank 1 on host elsewhere is dead, stopped or cut off") == 1);
  CHECK_THAT(done.err, ContainsSubstring("the launcher does not end the other processes"));
}

}  // namespace arbalest::tests
