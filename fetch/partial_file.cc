#include "fetch/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/base/error.h"
#include "messages/failure.h"
#include "saved_model/atomic_file.h"
#include "saved_model/sha256.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

// The user has chosen the data root.
[[noreturn]] void fail_open(const fs::path& path, int error) {
  if (kind_of_errno(error) == engine::ErrorKind::kOutOfMemory) fail_write(path, error);
  engine::fail(engine::ErrorKind::kUsage, "cannot write '{}': {}; name another --data-root", path.string(),
               std::strerror(error));
}

}  // namespace

PartialFile::PartialFile(const fs::path& path) : path_(path) {
  path_ += ".part";
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file_ < 0) fail_open(path_, errno);
  if (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(file_);
    engine::fail(engine::ErrorKind::kUsage, "another process is fetching '{}' at present; wait for it", path.string());
  }
  struct stat status {};
  if (fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file_);
    fail_open(path_, EINVAL);
  }
  bytes_ = static_cast<std::uint64_t>(status.st_size);
}

PartialFile::~PartialFile() { close(file_); }

void PartialFile::append(std::span<const std::byte> bytes) {
  write_fully(file_, bytes, path_);
  bytes_ += bytes.size();
}

void PartialFile::clear() {
  if (ftruncate(file_, 0) != 0) fail_write(path_, errno);
  bytes_ = 0;
}

std::string PartialFile::sha256() const { return jobs::sha256_of(path_); }

void PartialFile::move_to(const fs::path& path) {
  if (fsync(file_) != 0) fail_write(path_, errno);
  if (rename(path_.c_str(), path.c_str()) != 0) fail_write(path, errno);
  sync_directory(path.parent_path());
}

void PartialFile::remove() {
  if (unlink(path_.c_str()) != 0) fail_write(path_, errno);
}

}  // namespace arbalest::jobs
