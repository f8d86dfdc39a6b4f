// A file that is being fetched: it grows over several connections and processes, and gets its name once it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace arbalest::jobs {

// All functions throw as fail_write does (saved_model/atomic_file.h).
class PartialFile {
 public:
  // Opens NAME.part beside `path`, or makes it. A symbolic link is refused. Throws kUsage if another process fetches
  // the same file.
  explicit PartialFile(const std::filesystem::path& path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  void append(std::span<const std::byte> bytes);
  void clear();
  // Reads the whole file.
  std::string sha256() const;
  // Renames the file, so that it survives a power loss.
  void move_to(const std::filesystem::path& path);
  void remove();

 private:
  std::filesystem::path path_;
  int file_ = -1;
  std::uint64_t bytes_ = 0;
};

}  // namespace arbalest::jobs
