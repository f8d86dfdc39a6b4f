#include "saved_model/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "messages/failure.h"

namespace arbalest::jobs {

void sync_directory(const std::filesystem::path& directory) {
  const int handle = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) fail_write(directory, errno);
  const int result = fsync(handle);
  const int error = errno;
  close(handle);
  // Some file systems cannot sync a directory (EINVAL) and do not need it.
  if (result != 0 && error != EINVAL) fail_write(directory, error);
}

void fail_write(const std::filesystem::path& path, int error) {
  engine::fail(kind_of_errno(error), "cannot write '{}': {}", path.string(), std::strerror(error));
}

void write_fully(int file, std::span<const std::byte> bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_write(path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

namespace {

constexpr std::string_view kPartialEnding = ".partial-";  // then the number of the process

bool is_partial(std::string_view name) {
  const std::size_t ending = name.rfind(kPartialEnding);
  if (ending == std::string_view::npos) return false;
  const std::string_view number = name.substr(ending + kPartialEnding.size());
  return ending > 0 && !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<std::filesystem::path> partial_files_in(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    const bool is_file = entry->symlink_status(gone).type() == std::filesystem::file_type::regular;
    if (is_file && is_partial(entry->path().filename().native())) found.push_back(entry->path());
  }
  return found;
}

// Returns a descriptor of a new file, or -1 with an errno.
int open_new(const std::filesystem::path& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

// Removes a partial file unless the process that writes it lives.
void remove_unless_written(const std::filesystem::path& partial) {
  const int file = open(partial.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  if (flock(file, LOCK_EX | LOCK_NB) == 0) unlink(partial.c_str());
  close(file);
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  // The process number separates two runs. What has that name was left by a killed process, or belongs to a process of
  // another container or host that has the same number. It is never written to: it could be a link.
  for (pid_t number = getpid(); file_ < 0; ++number) {
    temporary_ = path_;
    temporary_ += fmt::format("{}{}", kPartialEnding, number);
    file_ = open_new(temporary_);
    if (file_ < 0 && errno == EEXIST) {
      remove_unless_written(temporary_);
      file_ = open_new(temporary_);
    }
    if (file_ >= 0 || errno == EEXIST) continue;
    const int error = errno;
    temporary_.clear();
    fail_write(path_, error);
  }
  // The lock shows that the process lives. A file system without locks cannot show it.
  static_cast<void>(flock(file_, LOCK_EX | LOCK_NB));
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) { write_fully(file_, bytes, path_); }

void AtomicFile::close_file() {
  // Linux frees the descriptor even if close fails, but the failure may report a failed write.
  if (close(std::exchange(file_, -1)) != 0) fail_write(path_, errno);
}

void AtomicFile::replace() {
  close_file();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail_write(path_, errno);
  temporary_.clear();
}

void AtomicFile::commit() {
  if (fsync(file_) != 0) fail_write(path_, errno);
  replace();
  const std::filesystem::path directory = path_.parent_path();
  sync_directory(directory.empty() ? "." : directory);
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void remove_partial_files(const std::filesystem::path& directory) {
  for (const std::filesystem::path& partial : partial_files_in(directory)) remove_unless_written(partial);
}

std::vector<std::filesystem::path> partial_files_of(const std::filesystem::path& path) {
  const std::string begin = path.filename().string() + std::string(kPartialEnding);
  std::vector<std::filesystem::path> found = partial_files_in(path.has_parent_path() ? path.parent_path() : ".");
  std::erase_if(found, [&](const std::filesystem::path& partial) {
    const std::string name = partial.filename().string();
    return !name.starts_with(begin) || name.find_first_not_of("0123456789", begin.size()) != std::string::npos;
  });
  return found;
}

void remove_partial_files_of(const std::filesystem::path& path) {
  for (const std::filesystem::path& partial : partial_files_of(path)) remove_unless_written(partial);
}

}  // namespace arbalest::jobs
