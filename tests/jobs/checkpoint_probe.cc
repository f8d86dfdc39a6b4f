// Works on checkpoints in a process of its own, which the fault tests stop or disturb at every system call.
//   checkpoint_probe save|save-large|resume|retain|live|check DIRECTORY [NUMBER]
// live: saves NUMBER checkpoints and deletes old ones. check: prints the number of the newest checkpoint, or `none`.
// Exit codes are the program's: 6 for a full disk, 5 for an unusable checkpoint, 1 for all other errors. 99: a file was
// left open.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "checkpoint/checkpoint_store.h"
#include "checkpoint/checkpoint_writer.h"
#include "engine/base/error.h"
#include "messages/exit_codes.h"
#include "tests/jobs/small_checkpoint.h"

namespace {

using namespace arbalest;

int open_files() {
  constexpr int kMost = 64;
  int files = 0;
  for (int file = 0; file < kMost; ++file) files += fcntl(file, F_GETFD) >= 0 ? 1 : 0;
  return files;
}

void warn(const std::string& text) { std::fprintf(stderr, "warning: %s\n", text.c_str()); }

// Tells the trace that checkpoint `number` is saved.
void acknowledge(std::uint64_t number) { access(("/acknowledged/" + std::to_string(number)).c_str(), F_OK); }

// Saves checkpoints, the third one twice, and keeps two of them.
void live(const std::filesystem::path& checkpoints, std::uint64_t count) {
  constexpr std::uint64_t kTwice = 3;
  for (std::uint64_t number = 1; number <= count; ++number) {
    for (int time = 0; time < (number == kTwice ? 2 : 1); ++time) {
      jobs::write_small(checkpoints, number);
      acknowledge(number);
    }
    jobs::retain(checkpoints, 2, {}, warn);
  }
}

void run(const std::string& command, const std::filesystem::path& checkpoints, std::uint64_t number) {
  if (command == "save") {
    jobs::write_small(checkpoints, number);
  } else if (command == "save-large") {
    jobs::CheckpointWriter writer(checkpoints, number);
    jobs::fill(writer, number);
    constexpr std::size_t kValues = 300'000;  // 1.2 MB
    writer.add_tensors(
        "large.safetensors",
        std::vector<dataflow::NamedTensor>{{"w", {std::int64_t{kValues}}, std::vector<float>(kValues, 1.0F)}}, {});
    writer.commit();
  } else if (command == "resume") {
    jobs::sweep_partial(checkpoints);
    const auto newest = jobs::newest_checkpoint(checkpoints, warn);
    std::printf("%s\n", newest ? std::to_string(newest->batches).c_str() : "none");
  } else if (command == "live") {
    live(checkpoints, number);
  } else if (command == "check") {
    jobs::sweep_partial(checkpoints);
    const auto newest = jobs::newest_checkpoint(checkpoints, warn);
    const bool is_right = !newest || jobs::holds_small(*newest);
    std::printf("%s\n", !is_right ? "wrong" : newest ? std::to_string(newest->batches).c_str() : "none");
  } else if (command == "retain") {
    jobs::retain(checkpoints, static_cast<int>(number), {}, warn);
  } else {
    std::abort();
  }
}

}  // namespace

int main(int arguments, char** argument) {
  const std::filesystem::path checkpoints = argument[2];
  const std::uint64_t number = arguments > 3 ? std::strtoull(argument[3], nullptr, 10) : 0;
  const int before = open_files();
  access("/begin", F_OK);  // the tests look for this call in the trace
  int code = jobs::exit_codes::kOk;
  try {
    run(argument[1], checkpoints, number);
  } catch (const engine::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    using engine::ErrorKind;
    code = error.kind() == ErrorKind::kOutOfMemory  ? jobs::exit_codes::kOutOfMemory
           : error.kind() == ErrorKind::kCheckpoint ? jobs::exit_codes::kCheckpointUnusable
                                                    : jobs::exit_codes::kInternalError;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    code = jobs::exit_codes::kInternalError;
  }
  return open_files() == before ? code : 99;
}
