#include "report/run_claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_store.h"
#include "engine/base/error.h"
#include "report/output_directory.h"
#include "report/run_lock.h"
#include "saved_model/run_files.h"

namespace arbalest::jobs {

using engine::ErrorKind;
namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_running(const fs::path& directory) {
  const std::optional<int> process = running_process(directory);
  engine::fail(ErrorKind::kUsage,
               "{} is training in '{}' at present; wait for it, or choose another directory with --output",
               process ? fmt::format("process {}", *process) : "another process", directory.string());
}

// As check_may_begin (resume_point.h): a run without a model, and one that was killed.
bool may_begin_anew(const fs::path& directory) {
  std::error_code error;
  const bool is_run = fs::exists(directory / kMetricsFile, error);
  return is_run && !fs::exists(directory / kModelFile, error);
}

[[noreturn]] void fail_used(const fs::path& directory, const char* file) {
  if (is_running(directory)) fail_running(directory);
  engine::fail(ErrorKind::kUsage, "'{}' holds a run already ({}{} choose another directory with --output",
               directory.string(), file,
               has_checkpoints(directory)  ? "); go on with it by --resume=auto, or"
               : may_begin_anew(directory) ? ", and no checkpoint); begin it anew by --resume=auto, or"
                                           : ", and no checkpoint);");
}

// A run that was killed before its start has left an empty log.
bool is_empty_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(path, error)) && fs::file_size(path, error) == 0;
}

// A run replaces the files in its folder tensorboard/.
void check_holds_no_run(const fs::path& directory) {
  for (const char* file : {kJobFile, kModelFile, kOriginFile, kMetricsFile, kSummaryFile, kTensorBoardFolder}) {
    std::error_code error;
    if (file == kMetricsFile && is_empty_file(directory / file)) continue;
    if (fs::exists(fs::symlink_status(directory / file, error))) fail_used(directory, file);
  }
  // Without this, the run would delete its own checkpoints in favor of later ones of another run.
  if (has_checkpoints(directory)) fail_used(directory, "checkpoints");
}

// Returns the run in `folder` whose log was written last; "" if there is none.
fs::path newest_run_in(const fs::path& folder) {
  fs::path newest;
  fs::file_time_type time;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code missing;
    const fs::file_time_type written = fs::last_write_time(entry->path() / kMetricsFile, missing);
    if (missing || (!newest.empty() && written < time)) continue;
    newest = entry->path();
    time = written;
  }
  return newest;
}

// A run there would lie among the runs, and --resume=auto would begin a new one instead of going on.
void check_is_no_folder_of_runs(const fs::path& directory) {
  for (const char* file : {kJobFile, kModelFile, kMetricsFile, kSummaryFile}) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(directory / file, error))) return;
  }
  const fs::path newest = newest_run_in(directory);
  if (newest.empty()) return;
  engine::fail(
      ErrorKind::kUsage,
      "'{}' is a folder of runs, not the directory of one; its newest run is '{}': go on with that by --output "
      "{} --resume=auto, or name a new directory in the folder",
      directory.string(), newest.string(), newest.string());
}

// Locks the log of a run, which shows other processes that the run is alive (is_running). A file system without locks
// only lacks that answer. is_locked() holds a lock for an instant, so this function tries again for a while. Returns
// false if another process holds the lock.
bool lock(int log) {
  constexpr int kTries = 50;
  constexpr std::chrono::milliseconds kPause{5};
  for (int i = 0; i < kTries; ++i) {
    if (flock(log, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

// Opens metrics.jsonl for appending, and locks it. A symbolic link is refused: the file behind it is not the run's.
int open_log(const fs::path& directory, int flags) {
  const fs::path path = directory / kMetricsFile;
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
  if (file < 0 && errno == EEXIST) fail_used(directory, kMetricsFile);
  if (file < 0) fail_directory("write to", directory, errno);
  if (!fs::is_regular_file(path)) {  // such as a pipe, which nobody may ever read
    close(file);
    engine::fail(ErrorKind::kUsage, "'{}' is not a file; remove it, or choose another directory with --output",
                 path.string());
  }
  if (lock(file)) return file;
  close(file);
  fail_running(directory);
}

}  // namespace

int claim_run(const fs::path& directory, ExistingRun existing) {
  check_is_no_folder_of_runs(directory);
  // The process of a run that is there must have ended.
  if (existing == ExistingRun::kContinue) return open_log(directory, 0);
  check_holds_no_run(directory);
  // The process that locks an empty log owns the directory: one that has created it may have been overtaken.
  const bool is_there = is_empty_file(directory / kMetricsFile);
  const int log = open_log(directory, is_there ? 0 : O_EXCL);
  if (lseek(log, 0, SEEK_END) != 0) {
    close(log);
    fail_used(directory, kMetricsFile);
  }
  return log;
}

}  // namespace arbalest::jobs
