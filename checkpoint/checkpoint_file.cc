#include "checkpoint/checkpoint_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "checkpoint/xxh3.h"
#include "saved_model/atomic_file.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

// A new file that is hashed while it is written.
class NewFile {
 public:
  explicit NewFile(fs::path path)
      : path_(std::move(path)), file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (file_ < 0) fail_write(path_, errno);
  }
  ~NewFile() {
    if (file_ >= 0) close(file_);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    write_fully(file_, bytes, path_);
    hash_.update(bytes);
    size_ += bytes.size();
  }

  void sync_and_close() {
    if (fsync(file_) != 0) fail_write(path_, errno);
    // Linux frees the descriptor even if close fails, but the failure may report a failed write.
    if (close(std::exchange(file_, -1)) != 0) fail_write(path_, errno);
  }

  std::uint64_t size() const { return size_; }
  std::string hash() const { return hash_.finish(); }

 private:
  fs::path path_;
  int file_;
  Xxh3 hash_;
  std::uint64_t size_ = 0;
};

}  // namespace

ManifestEntry write_checkpoint_file(const fs::path& directory, std::string_view name, const Fill& fill) {
  NewFile file(directory / name);
  fill([&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.sync_and_close();
  return {std::string(name), file.size(), file.hash()};
}

}  // namespace arbalest::jobs
