// Data that does not fit into memory is refused before the system would kill the program.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/cli/small_run.h"
#include "tests/support/catch.h"
#include "tests/support/npy_writer.h"
#include "tests/support/skip.h"

namespace arbalest::tests {

namespace {

constexpr const char* kJob = R"(name: "large"
model { zoo { logistic_regression {} } }
data { npy { directory: "arrays" classes: 2 height: 64 width: 64 channels: 1 } }
training { batch_size: 4 max_epochs: 1 }
learning_rate { base: 0.05 }
learners { per_device { fixed: 1 } }
)";

// A training set of `images` images of 4 KiB; the file is sparse.
class LargeArrays {
 public:
  explicit LargeArrays(std::int64_t images) {
    const std::filesystem::path folder = program_ / "data/arrays";
    std::filesystem::create_directories(folder);
    write_text(program_ / "large.txtpb", kJob);
    write_text(folder / "train_images.npy", npy("|u1", fmt::format("{}, 64, 64", images), ""));
    std::filesystem::resize_file(folder / "train_images.npy", std::filesystem::file_size(folder / "train_images.npy") +
                                                                  static_cast<std::uintmax_t>(images) * 64 * 64);
    const std::string labels(static_cast<std::size_t>(images), '\0');
    write_text(folder / "train_labels.npy", npy("|u1", fmt::format("{},", images), labels));
    write_text(folder / "test_images.npy", npy("|u1", "4, 64, 64", std::string(4 * 64 * 64, '\1')));
    write_text(folder / "test_labels.npy", npy("|u1", "4,", std::string(4, '\0')));
  }

  // Runs the program after a command of the shell.
  Completed run(const std::string& before, const std::string& arguments) const {
    const std::string command = fmt::format("{}; exec {} {}", before, ARBALEST_PROGRAM, arguments);
    return Subprocess({"/bin/sh", "-c", command}, program_.environment(), program_.directory()).wait();
  }

  const Program& program() const { return program_; }

 private:
  Program program_;
};

// A control group with a limit of memory.
class MemoryGroup {
 public:
  explicit MemoryGroup(std::int64_t bytes) {
    const std::string name = fmt::format("arbalest-test-{}", getpid());
    const std::filesystem::path root = "/sys/fs/cgroup";
    for (const auto& [parent, limit] : {std::pair{root / "memory", "memory.limit_in_bytes"}, {root, "memory.max"}}) {
      std::error_code error;
      if (!std::filesystem::create_directory(parent / name, error) || error) continue;
      group_ = parent / name;
      std::ofstream file(group_ / limit);
      file << bytes << std::flush;
      if (file) return;
      std::filesystem::remove(group_, error);
    }
    skip_test("needs the right to make a control group with a limit of memory");
  }
  ~MemoryGroup() {
    std::error_code error;
    std::filesystem::remove(group_, error);
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  // The command by which a shell enters the group.
  std::string entry() const { return fmt::format("echo $$ > {}/cgroup.procs", group_.string()); }

 private:
  std::filesystem::path group_;
};

const std::vector<std::string> kCommands = {"train large.txtpb --data-root data --output run",
                                            "train large.txtpb --data-root data --dry-run",
                                            "data verify large.txtpb --data-root data"};

}  // namespace

TEST_CASE("memory: an array beyond the address space is exit 6 with the bytes and the remedy, in every command") {
  const LargeArrays arrays(1 << 20);  // 4 GiB
  for (const std::string& command : kCommands) {
    INFO(command);
    const Completed result = arrays.run("ulimit -v 3145728", command);
    INFO(result.err);
    CHECK(result.exit_code == 6);
    CHECK_THAT(result.err, ContainsSubstring("train_images.npy: needs 4294967296 bytes (4096.0 MiB) of memory, but ") &&
                               ContainsSubstring(" are free") && ContainsSubstring("arbalest data convert"));
  }
}

TEST_CASE("memory: in a container an array beyond its limit is exit 6, and no signal") {
  const LargeArrays arrays(195'313);  // 800 MB
  const MemoryGroup group(400'000'000);
  for (const std::string& command : kCommands) {
    INFO(command);
    const Completed result = arrays.run(group.entry(), command);
    INFO(result.err);
    CHECK(result.exit_code == 6);
    CHECK_THAT(result.err, ContainsSubstring("train_images.npy: needs 800002048 bytes (762.9 MiB) of memory, but "));
  }
  // A saved model is evaluated on a test set that does not fit.
  const std::filesystem::path folder = arrays.program() / "data/arrays";
  std::filesystem::rename(folder / "train_images.npy", folder / "large_images.npy");
  std::filesystem::rename(folder / "train_labels.npy", folder / "large_labels.npy");
  std::filesystem::copy_file(folder / "test_images.npy", folder / "train_images.npy");
  std::filesystem::copy_file(folder / "test_labels.npy", folder / "train_labels.npy");
  REQUIRE(arrays.run("true", "train large.txtpb --data-root data --output trained").exit_code == 0);
  std::filesystem::rename(folder / "large_images.npy", folder / "test_images.npy");
  std::filesystem::rename(folder / "large_labels.npy", folder / "test_labels.npy");
  const Completed evaluated = arrays.run(group.entry(), "evaluate trained");
  INFO(evaluated.err);
  CHECK(evaluated.exit_code == 6);
  CHECK_THAT(evaluated.err, ContainsSubstring("test_images.npy: needs 800002048 bytes"));
}

}  // namespace arbalest::tests
