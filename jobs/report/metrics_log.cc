#include "jobs/report/metrics_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>

#include "jobs/export/atomic_file.h"
#include "jobs/report/run_lock.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

fs::path directory_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

MetricsLog::MetricsLog(std::filesystem::path path, int file)
    : path_(std::move(path)), file_(file), directory_(identity_of(directory_of(path_))) {}

MetricsLog::~MetricsLog() { close(file_); }

void MetricsLog::append(const char* event, const nlohmann::ordered_json& row) {
  nlohmann::ordered_json line = {{"event", event}};
  line.update(row);
  waiting_ += line.dump() + '\n';
  ++waiting_lines_;
  write_waiting();
}

bool MetricsLog::is_in_place() const {
  struct stat opened {};
  if (fstat(file_, &opened) != 0) fail_write(path_, errno);
  return identity_of(path_) == FileIdentity{opened.st_dev, opened.st_ino};
}

// Writes to a deleted file succeed, so nothing else would tell that they are lost.
void MetricsLog::check_place() {
  if (is_in_place()) return;
  struct stat found {};
  const bool is_missing = stat(path_.c_str(), &found) != 0;
  if (is_missing && errno != ENOENT && errno != ENOTDIR) return;  // whether it is there cannot be told
  // Another run may be in a directory of the same name by now.
  if (identity_of(directory_of(path_)) != directory_ || is_locked(path_)) {
    throw RunGone(fmt::format(
        "the directory '{}' was deleted or renamed while its run was training, so nothing can be saved there",
        directory_of(path_).string()));
  }
  if (is_missing) return restore();
  engine::fail(engine::ErrorKind::kOutOfMemory,
               "'{}' was replaced by another file while its run was training; move that file away", path_.string());
}

// The open descriptor keeps the bytes of the deleted file.
void MetricsLog::restore() {
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) fail_write(path_, errno);
  static_cast<void>(flock(file, LOCK_EX | LOCK_NB));  // as claim_run() does
  try {
    std::string piece(1U << 20U, '\0');
    for (off_t at = 0;;) {
      const ssize_t read = pread(file_, piece.data(), piece.size(), at);
      if (read < 0) fail_write(path_, errno);
      if (read == 0) break;
      write_fully(file, std::as_bytes(std::span(piece).first(static_cast<std::size_t>(read))), path_);
      at += read;
    }
  } catch (...) {
    unlink(path_.c_str());
    close(file);
    throw;
  }
  close(file_);
  file_ = file;
  restored_ = true;
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

std::uint64_t MetricsLog::end_of_lines_before(std::uint64_t end) const {
  std::string text(end, '\0');
  const std::span<std::byte> all = std::as_writable_bytes(std::span(text));
  std::size_t known = 0;
  while (known < all.size()) {
    const ssize_t read = pread(file_, &all[known], all.size() - known, static_cast<off_t>(known));
    if (read < 0) fail_write(path_, errno);
    if (read == 0) break;
    known += static_cast<std::size_t>(read);
  }
  text.resize(known);
  std::size_t begin = 0;
  for (std::size_t line_end = text.find('\n'); line_end != std::string::npos; line_end = text.find('\n', begin)) {
    const auto line = std::string_view(text).substr(begin, line_end - begin);
    if (!nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false).is_object()) break;
    begin = line_end + 1;
  }
  return begin;
}

bool MetricsLog::cut(std::uint64_t bytes) {
  ARBALEST_CHECK(waiting_.empty());
  // A power loss and lines that could not be written leave fewer bytes, which need not end with a line.
  const std::uint64_t size = file_bytes();
  const std::uint64_t end = end_of_lines_before(std::min(size, bytes));
  if (size > end && ftruncate(file_, static_cast<off_t>(end)) != 0) fail_write(path_, errno);
  return end == bytes;
}

void MetricsLog::sync() {
  write_waiting();
  // EINVAL: the file cannot be synced, such as a pipe.
  if (fsync(file_) == 0 || errno == EINVAL) return;
  sync_failed_ = true;
  fail_write(path_, errno);
}

}  // namespace arbalest::jobs
