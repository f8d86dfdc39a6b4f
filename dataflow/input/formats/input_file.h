// Reads a file that may be compressed with gzip; its first bytes show whether it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>

namespace arbalest::dataflow {

// Every failure throws ErrorKind::kData and names the file. Offsets count bytes after decompression.
class InputFile {
 public:
  // Throws if `path` is not a readable regular file.
  //   is_raw: the format is never compressed as a whole, so gzip data is content like any other
  explicit InputFile(std::filesystem::path path, bool is_raw = false);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Fills all of `out`. Throws if the file ends before (`what` names what is being read) or the gzip data is corrupt.
  void read(std::span<std::uint8_t> out, const char* what);
  // Fills `out` as far as there is content and returns the number of bytes read. Throws if the gzip data is corrupt.
  std::size_t read_up_to(std::span<std::uint8_t> out);
  // Throws unless all content has been read and the checksum of gzip data is right.
  void expect_end();

  // Upper bound of the remaining content: the file's remaining bytes, or the most that gzip can expand them to.
  std::uint64_t most_left() const noexcept;

  std::uint64_t offset() const noexcept { return offset_; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  struct Inflater;
  struct CloseFile {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  std::size_t read_some(std::span<std::uint8_t> out);
  std::size_t read_file(std::span<std::uint8_t> out);

  std::filesystem::path path_;
  std::uint64_t file_bytes_ = 0;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::unique_ptr<Inflater> inflater_;  // null: the file is raw
  std::uint64_t offset_ = 0;
};

}  // namespace arbalest::dataflow
