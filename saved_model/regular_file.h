// Reads a file that is not trusted: only regular files are opened, and the size is known before anything is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "engine/base/error.h"

namespace arbalest::jobs {

// Its kind is kCheckpoint. The message does not name the file.
class FileError final : public engine::Error {
 public:
  // `error`: an errno; 0 if the file itself is not what it should be.
  FileError(int error, const std::string& what) : Error(engine::ErrorKind::kCheckpoint, what), error_(error) {}

  int error() const noexcept { return error_; }

 private:
  int error_;
};

class RegularFile {
 public:
  // Follows symbolic links. Throws FileError.
  explicit RegularFile(const std::filesystem::path& path);
  // Opens a file of an open directory; a symbolic link is refused. `name`: without a slash.
  RegularFile(int directory, const char* name);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  // The size when it was opened.
  std::uint64_t size() const noexcept { return size_; }

  // Fills all of `bytes` with what follows the bytes read before. Throws FileError, also if the file ends before.
  void read(std::span<std::byte> bytes);
  // Reads in the same way from byte `offset` on. The next read() follows these bytes.
  void read_at(std::uint64_t offset, std::span<std::byte> bytes);

 private:
  void open_at(int directory, const char* path, int flags);

  int file_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t offset_ = 0;
};

}  // namespace arbalest::jobs
