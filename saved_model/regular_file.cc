#include "saved_model/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace arbalest::jobs {

RegularFile::RegularFile(const std::filesystem::path& path) { open_at(AT_FDCWD, path.c_str(), 0); }

RegularFile::RegularFile(int directory, const char* name) { open_at(directory, name, O_NOFOLLOW); }

RegularFile::~RegularFile() { close(file_); }

void RegularFile::open_at(int directory, const char* path, int flags) {
  // O_NONBLOCK: opening a pipe would wait for its writer.
  file_ = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
  if (file_ < 0) throw FileError(errno, std::strerror(errno));
  struct stat status {};
  const int error = fstat(file_, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  close(file_);
  throw FileError(error, error == 0 ? "not a regular file" : std::strerror(error));
}

void RegularFile::read(std::span<std::byte> bytes) { read_at(offset_, bytes); }

void RegularFile::read_at(std::uint64_t offset, std::span<std::byte> bytes) {
  offset_ = offset;
  while (!bytes.empty()) {
    const ssize_t count = pread(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw FileError(errno, std::strerror(errno));
    if (count == 0) throw FileError(0, "it became shorter while it was read");
    offset_ += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

}  // namespace arbalest::jobs
