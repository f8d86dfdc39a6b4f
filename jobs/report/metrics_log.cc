#include "jobs/report/metrics_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "jobs/export/atomic_file.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

MetricsLog::~MetricsLog() { close(file_); }

void MetricsLog::append(const char* event, const nlohmann::ordered_json& row) {
  nlohmann::ordered_json line = {{"event", event}};
  line.update(row);
  waiting_ += line.dump() + '\n';
  ++waiting_lines_;
  write_waiting();
}

// Writes to a deleted file succeed, so nothing else would tell that they are lost.
void MetricsLog::check_place() const {
  struct stat opened {};
  struct stat found {};
  if (fstat(file_, &opened) != 0) fail_write(path_, errno);
  if (stat(path_.c_str(), &found) == 0) {
    if (found.st_ino == opened.st_ino && found.st_dev == opened.st_dev) return;
  } else if (errno != ENOENT && errno != ENOTDIR) {
    return;  // whether it is there cannot be told
  }
  std::error_code error;
  const fs::path directory = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
  if (!fs::is_directory(directory, error)) {
    throw RunGone(fmt::format(
        "the directory '{}' was deleted or renamed while its run was training, so nothing can be saved there",
        directory.string()));
  }
  engine::fail(engine::ErrorKind::kInternal, "'{}' was deleted or replaced while its run was training", path_.string());
}

void MetricsLog::write_waiting() {
  check_place();
  if (waiting_.empty()) return;
  const std::uint64_t before = file_bytes();
  try {
    write_fully(file_, std::as_bytes(std::span(waiting_)), path_);
  } catch (const engine::Error&) {
    // A part of a line may have been written. A file can be cut on a full disk, too.
    if (ftruncate(file_, static_cast<off_t>(before)) != 0) fail_write(path_, errno);
    throw;
  }
  waiting_.clear();
  waiting_lines_ = 0;
}

std::uint64_t MetricsLog::file_bytes() const {
  struct stat status {};
  if (fstat(file_, &status) != 0) fail_write(path_, errno);
  return static_cast<std::uint64_t>(status.st_size);
}

std::uint64_t MetricsLog::bytes() const { return file_bytes() + waiting_.size(); }

bool MetricsLog::ends_within_line() const {
  const std::uint64_t size = file_bytes();
  char last = 0;
  if (size == 0) return false;
  return pread(file_, &last, 1, static_cast<off_t>(size - 1)) != 1 || last != '\n';
}

void MetricsLog::cut(std::uint64_t bytes) {
  ARBALEST_CHECK(waiting_.empty());
  const std::uint64_t size = file_bytes();
  if (size < bytes && ends_within_line()) write_fully(file_, std::as_bytes(std::span("\n", 1)), path_);
  if (size <= bytes) return;
  if (ftruncate(file_, static_cast<off_t>(bytes)) != 0) fail_write(path_, errno);
}

void MetricsLog::sync() {
  write_waiting();
  // EINVAL: the file cannot be synced, such as a pipe.
  if (fsync(file_) == 0 || errno == EINVAL) return;
  sync_failed_ = true;
  fail_write(path_, errno);
}

}  // namespace arbalest::jobs
