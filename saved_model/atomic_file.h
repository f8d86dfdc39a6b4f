// A file that is written whole or not at all: under another name in the same directory, synced, then renamed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace arbalest::jobs {

// Throws ErrorKind::kOutOfMemory if the disk is full, else kInternal; the message names the file. `error`: an errno.
[[noreturn]] void fail_write(const std::filesystem::path& path, int error);

// All errors are those of fail_write. After an error the previous file is untouched and the partial one is removed.
// fsync is never repeated on the same file, because the kernel forgets which pages it could not write.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Moves the file to its place, so that it survives a power loss. Nothing may be written afterwards.
  void commit();
  // Moves the file to its place without waiting for the disk, for files that show the present: after a power loss the
  // file may be empty.
  void replace();

 private:
  void close_file();

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int file_ = -1;
};

void write_file(const std::filesystem::path& path, std::string_view text);

// Returns the partial files of the file `path`, which processes have left or are writing.
std::vector<std::filesystem::path> partial_files_of(const std::filesystem::path& path);
// Remove the partial files in `directory`, and those of the file `path`, whose processes are gone. What cannot be
// removed stays.
void remove_partial_files(const std::filesystem::path& directory);
void remove_partial_files_of(const std::filesystem::path& path);

// Makes the names in a directory survive a power loss: renamed, added and removed ones.
void sync_directory(const std::filesystem::path& directory);

// Writes all of `bytes` to an open file; `path` is for messages. Throws as fail_write does.
void write_fully(int file, std::span<const std::byte> bytes, const std::filesystem::path& path);

}  // namespace arbalest::jobs
