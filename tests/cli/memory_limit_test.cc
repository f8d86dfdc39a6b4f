// Data that does not fit into memory is refused before the system would kill the program.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "tests/cli/small_run.h"
#include "tests/support/catch.h"
#include "tests/support/npy_writer.h"

namespace arbalest::tests {

namespace {

constexpr const char* kJob = R"(name: "large"
model { zoo { logistic_regression {} } }
data { npy { directory: "arrays" classes: 2 height: 64 width: 64 channels: 1 } }
training { batch_size: 4 max_epochs: 1 }
learning_rate { base: 0.05 }
learners { per_device { fixed: 1 } }
)";

constexpr std::int64_t kImages = 1 << 20;  // of 4 KiB, so the array has 4 GiB; the file is sparse
constexpr std::int64_t kLimitKibibytes = 3 << 20;

class LargeArrays {
 public:
  LargeArrays() {
    const std::filesystem::path folder = program_ / "data/arrays";
    std::filesystem::create_directories(folder);
    write_text(program_ / "large.txtpb", kJob);
    write_text(folder / "train_images.npy", npy("|u1", fmt::format("{}, 64, 64", kImages), ""));
    std::filesystem::resize_file(folder / "train_images.npy", std::filesystem::file_size(folder / "train_images.npy") +
                                                                  static_cast<std::uintmax_t>(kImages) * 64 * 64);
    write_text(folder / "train_labels.npy", npy("|u1", fmt::format("{},", kImages), std::string(kImages, '\0')));
    write_text(folder / "test_images.npy", npy("|u1", "4, 64, 64", std::string(4 * 64 * 64, '\1')));
    write_text(folder / "test_labels.npy", npy("|u1", "4,", std::string(4, '\0')));
  }

  // Runs the program with 3 GiB of addresses.
  Completed run(const std::string& arguments) const {
    const std::string command = fmt::format("ulimit -v {}; exec {} {}", kLimitKibibytes, ARBALEST_PROGRAM, arguments);
    return Subprocess({"/bin/sh", "-c", command}, program_.environment(), program_.directory()).wait();
  }

  const Program& program() const { return program_; }

 private:
  Program program_;
};

}  // namespace

TEST_CASE("memory: an array that does not fit is exit 6 with the bytes and the remedy, in every command") {
  const LargeArrays arrays;
  for (const char* command :
       {"train large.txtpb --data-root data --output run", "train large.txtpb --data-root data --dry-run",
        "data verify large.txtpb --data-root data"}) {
    INFO(command);
    const Completed result = arrays.run(command);
    INFO(result.err);
    CHECK(result.exit_code == 6);
    CHECK_THAT(result.err, ContainsSubstring("train_images.npy: needs 4294967296 bytes (4096.0 MiB) of memory, but ") &&
                               ContainsSubstring(" are free") && ContainsSubstring("arbalest data convert"));
  }
}

}  // namespace arbalest::tests
