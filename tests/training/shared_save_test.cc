// Saves over several processes whose system calls fail or take long. This program replaces fsync and pthread_create.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/training/shared_run.h"
#include "train/processes/shared_save.h"

namespace {

// Returns the answer of fsync for a path: 0 or an error number. An empty function means that fsync works.
std::function<int(const std::string& path)> on_sync;
// Whether this thread gets no further threads.
thread_local bool has_no_threads = false;

}  // namespace

extern "C" int fsync(int file) {
  if (on_sync) {
    const std::string path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", file));
    errno = on_sync(path);
    if (errno != 0) return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, file));
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* argument) {
  using Function = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const real = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "pthread_create"));
  return has_no_threads ? EAGAIN : real(thread, attributes, run, argument);
}

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;
using engine::process::World;

// Sets what fsync answers until the end of a scope.
class Syncs {
 public:
  explicit Syncs(std::function<int(const std::string& path)> answer) { on_sync = std::move(answer); }
  ~Syncs() { on_sync = {}; }
  Syncs(const Syncs&) = delete;
  Syncs& operator=(const Syncs&) = delete;
};

bool is_of(const std::string& path, const std::string& file) { return path.find("/" + file) != std::string::npos; }

// The state of a rank that has the learner of its number, among one of each rank.
scheduler::TrainingState state_of(const World& world) {
  scheduler::TrainingState training;
  training.batches = 10;
  training.learners.resize(static_cast<std::size_t>(world.size()));
  const auto own = static_cast<std::size_t>(world.rank());
  training.learners[own].weights = {{"weight", {1}, {static_cast<float>(own)}}};
  return training;
}

// Saves a checkpoint of nothing but learners, as train/run_checkpoints does. Returns on rank 0 whether it is there.
bool save_learners(World& world, const fs::path& run_directory) {
  jobs::SharedSave save(world, run_directory);
  scheduler::TrainingState training = state_of(world);
  if (world.rank() != 0) {
    save.begin(training, nullptr);
    save.finish();
    return true;
  }
  jobs::CheckpointWriter writer(jobs::checkpoints_of(run_directory), training.batches);
  const jobs::AddFiles add_files = save.begin(training, &writer).value();
  std::future<void> writing = std::async(std::launch::async, [&] { add_files(writer, false); });
  save.finish();
  const World::FileWork work(world);
  writing.get();
  return fs::exists(writer.commit());
}

}  // namespace

TEST_CASE("processes: a save that takes longer than an operation may is no hang", "[processes]") {
  const TemporaryDirectory root;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> warnings;
  std::atomic<bool> has_failed = false;
  // The disk of rank 2 goes on when rank 0 has warned. By then an operation has taken longer than it may.
  const Syncs syncs([&](const std::string& path) {
    if (!is_of(path, "learner-0002")) return 0;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !warnings.empty() || has_failed; });
    return 0;
  });
  const engine::process::WatchdogOptions watchdog{
      .peer_timeout_seconds = 2.0, .operation_timeout_seconds = 2.5, .warn = [&](const std::string& text) {
        const std::lock_guard lock(mutex);
        warnings.push_back(text);
        changed.notify_all();
      }};
  std::atomic<int> saved = 0;
  on_each_rank(
      3,
      [&](World& world) {
        try {
          saved += save_learners(world, root.path()) ? 1 : 0;
          world.barrier();  // rank 1 waits here for rank 0, which waits for rank 2
        } catch (const engine::Error&) {
          has_failed = true;
          changed.notify_all();
          throw;
        }
      },
      watchdog);
  CHECK(saved == 3);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings.front(), ContainsSubstring("rank 2 on host here has been reading or writing files for"));
}

TEST_CASE("processes: a rank without a thread for its files writes them itself", "[processes]") {
  const TemporaryDirectory root;
  on_each_rank(2, [&](World& world) {
    has_no_threads = world.rank() == 1;
    const bool saved = save_learners(world, root.path());
    has_no_threads = false;
    expect(saved, "the checkpoint is there");
  });
  CHECK(files_of(root.path()).contains("10/learner-0001.safetensors"));
}

TEST_CASE("processes: if rank 0 has no thread for a save, that save fails and the run goes on", "[processes]") {
  const TemporaryDirectory whole;
  const SharedRun expected = train({.roots = {whole.path(), whole.path()}});
  for (const bool all_see : {true, false}) {
    CAPTURE(all_see);
    const TemporaryDirectory root;
    const TemporaryDirectory other;
    // After the first checkpoint the main thread of rank 0 gets no thread, until a warning says so.
    const SharedRun run = train({.roots = {root.path(), all_see ? root.path() : other.path()},
                                 .at_checkpoint = [count = 0]() mutable { has_no_threads = ++count == 1; },
                                 .at_warning = [] { has_no_threads = false; }});
    CHECK(run.summary.status == jobs::RunStatus::kCompleted);
    CHECK(run.summary.model_sha256 == expected.summary.model_sha256);
    CAPTURE(run.warnings);
    REQUIRE(run.warnings.size() == 1);
    CHECK_THAT(run.warnings.front(),
               ContainsSubstring("was not saved: cannot start a thread to write the checkpoint") &&
                   ContainsSubstring("earlier checkpoints are intact"));
    CHECK(run.checkpoints.size() >= 2);
    CHECK(jobs::list_checkpoints(jobs::checkpoints_of(root.path())).size() == run.checkpoints.size());
  }
}

TEST_CASE("processes: if rank 0 cannot begin a checkpoint, the run goes on", "[processes]") {
  const TemporaryDirectory whole;
  const SharedRun expected = train({.roots = {whole.path(), whole.path()}});
  const TemporaryDirectory root;
  const fs::path checkpoints = jobs::checkpoints_of(root.path());
  const SharedRun run = train({.roots = {root.path(), root.path()},
                               .at_checkpoint =
                                   [&, count = 0]() mutable {
                                     if (++count != 1) return;
                                     fs::rename(checkpoints, root / "kept");
                                     write_text(checkpoints, "a file in the place of the directory");
                                   },
                               .at_warning =
                                   [&] {
                                     fs::remove(checkpoints);
                                     fs::rename(root / "kept", checkpoints);
                                   }});
  CHECK(run.summary.status == jobs::RunStatus::kCompleted);
  CHECK(run.summary.model_sha256 == expected.summary.model_sha256);
  REQUIRE(run.warnings.size() == 1);
  CHECK_THAT(run.warnings.front(), ContainsSubstring("was not saved") && ContainsSubstring("checkpoints"));
  CHECK(jobs::list_checkpoints(checkpoints).size() == run.checkpoints.size());
}

TEST_CASE("processes: rank 0 takes the files that others send, even if the checkpoint is lost", "[processes]") {
  const TemporaryDirectory whole;
  const SharedRun expected = train({.roots = {whole.path(), whole.path()}});
  // A file of rank 0, and the first of the two that rank 1 sends.
  for (const std::string lost : {"learner-0000", "learner-0001"}) {
    CAPTURE(lost);
    const TemporaryDirectory root;
    const TemporaryDirectory other;
    std::atomic<int> written = 0;
    const Syncs syncs([&](const std::string& path) { return is_of(path, lost) && ++written == 2 ? EIO : 0; });
    const SharedRun run = train({.roots = {root.path(), other.path()}});
    CHECK(run.summary.model_sha256 == expected.summary.model_sha256);
    REQUIRE(run.warnings.size() == 1);
    CHECK_THAT(run.warnings.front(), ContainsSubstring("was not saved") && ContainsSubstring(lost));
    CHECK(jobs::list_checkpoints(jobs::checkpoints_of(root.path())).size() == run.checkpoints.size());
    CHECK(files_of(root.path()).size() > 0);  // the later ones have the right files in the right places
    const SharedRun resumed = train({.roots = {root.path(), other.path()}, .resumes = true});
    CHECK(resumed.summary.model_sha256 == expected.summary.model_sha256);
  }
}

}  // namespace arbalest::tests
