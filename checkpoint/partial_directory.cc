#include "checkpoint/partial_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/manifest.h"
#include "engine/base/error.h"
#include "saved_model/atomic_file.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

int open_directory(const fs::path& path) { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

// Takes the lock of an open directory. Returns 0, or EWOULDBLOCK if another process has it, or another errno if the
// file system has no such locks.
int try_lock(int directory) { return flock(directory, LOCK_EX | LOCK_NB) == 0 ? 0 : errno; }

// Whether `path` still leads to the open directory.
bool is_at(int directory, const fs::path& path) {
  struct stat opened {};
  struct stat found {};
  return fstat(directory, &opened) == 0 && lstat(path.c_str(), &found) == 0 && opened.st_ino == found.st_ino &&
         opened.st_dev == found.st_dev;
}

// Whether the process of the number in ".partial-<process>-<number>" exists.
bool has_process(const std::string& name) {
  const char* const begin = name.data() + kPartialPrefix.size();
  pid_t process = 0;
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), process);
  if (error != std::errc() || *end != '-' || process <= 0) return true;  // not our name: left alone
  return kill(process, 0) == 0 || errno != ESRCH;
}

}  // namespace

PartialDirectory::PartialDirectory(const fs::path& parent) {
  // A directory of the same name was left by a process that had the same number, or is that of another writer.
  for (int number = 0; !create(parent / fmt::format("{}{}-{}", kPartialPrefix, getpid(), number)); ++number) {
  }
}

// Returns false if another process has the name.
bool PartialDirectory::create(const fs::path& path) {
  if (mkdir(path.c_str(), 0777) != 0) {
    if (errno == EEXIST) return false;
    fail_write(path, errno);
  }
  path_ = path;
  lock_ = open_directory(path);
  const int error = lock_ < 0 ? errno : try_lock(lock_);
  // Between the creation and the lock, a sweep could take the directory for a leftover.
  if (error == 0 ? is_at(lock_, path) : lock_ >= 0 && error != EWOULDBLOCK) return true;
  if (lock_ >= 0) close(std::exchange(lock_, -1));
  path_.clear();
  if (error == 0 || error == EWOULDBLOCK || error == ENOENT) return false;
  rmdir(path.c_str());
  fail_write(path, error);
}

PartialDirectory::~PartialDirectory() {
  try {
    if (!path_.empty()) remove_checkpoint_files(path_);
  } catch (const std::bad_alloc&) {  // the directory stays for sweep_partial
  }
  close(lock_);
}

void PartialDirectory::sync() const {
  // Some file systems cannot sync a directory (EINVAL) and do not need it.
  if (fsync(lock_) != 0 && errno != EINVAL) fail_write(path_, errno);
}

// Without a checkpoint at `path`.
void PartialDirectory::rename_to(const fs::path& path) {
  if (rename(path_.c_str(), path.c_str()) != 0) fail_write(path, errno);
  try {
    sync_directory(path.parent_path());
  } catch (...) {
    if (rename(path.c_str(), path_.c_str()) != 0) path_.clear();  // what could not be undone is a whole checkpoint
    throw;
  }
  path_.clear();
}

void PartialDirectory::exchange_with(const fs::path& path) {
  const auto exchange = [&] {
    return renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0 ? 0 : errno;
  };
  const int error = exchange();
  if (error == EINVAL || error == ENOSYS) {
    engine::fail(engine::ErrorKind::kInternal,
                 "'{}' exists, and its file system cannot replace a directory in one step; remove it or give it "
                 "another name",
                 path.string());
  }
  if (error != 0) fail_write(path, error);
  try {
    sync_directory(path.parent_path());
  } catch (...) {
    if (exchange() != 0) path_.clear();  // both checkpoints stay
    throw;
  }
}

void PartialDirectory::move_to(const fs::path& path) {
  struct stat status {};
  const bool exists = lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  if (exists) {
    exchange_with(path);
  } else {
    rename_to(path);
  }
}

int remove_if_abandoned(const fs::path& path) {
  const int directory = open_directory(path);
  if (directory < 0) return errno == ENOENT ? 0 : errno;
  const int error = try_lock(directory);  // kept until the files are gone: a writer may be about to take it
  const bool in_use = error == EWOULDBLOCK || (error != 0 && has_process(path.filename()));
  const int result = in_use ? 0 : remove_checkpoint_files(path);
  close(directory);
  return result;
}

int remove_checkpoint_files(const fs::path& path) {
  if (unlink((path / kManifestFile).c_str()) != 0 && errno != ENOENT) return errno;
  std::error_code error;
  fs::remove_all(path, error);
  return error.value();
}

}  // namespace arbalest::jobs
