#include "jobs/checkpoint/checkpoint_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "engine/error.h"
#include "jobs/checkpoint/xxh3.h"
#include "jobs/export/atomic_file.h"
#include "jobs/export/safetensors.h"

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

// Creates the directory if it does not exist. Returns its path without a slash at the end.
fs::path make_directory(const fs::path& path) {
  const fs::path directory = path.has_filename() ? path : path.parent_path();
  if (mkdir(directory.c_str(), 0777) == 0) {
    sync_directory(directory.has_parent_path() ? directory.parent_path() : ".");
  } else if (errno != EEXIST) {
    fail_write(directory, errno);
  }
  return directory;
}

}  // namespace

std::string checkpoint_name(std::uint64_t batches) { return fmt::format("{:012}", batches); }

CheckpointWriter::CheckpointWriter(const fs::path& checkpoints, std::uint64_t batches)
    : checkpoints_(make_directory(checkpoints)), partial_(checkpoints_), manifest_{.batches = batches, .files = {}} {}

ManifestEntry CheckpointWriter::write_file(std::string_view name, const std::function<void(const Write&)>& fill) {
  NewFile file(partial_.path() / name);
  fill([&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.sync_and_close();
  return {std::string(name), file.size(), file.hash()};
}

void CheckpointWriter::add(std::string_view name, const std::function<void(const Write&)>& fill) {
  ARBALEST_CHECK(is_checkpoint_file_name(name));
  ARBALEST_CHECK(std::ranges::find(manifest_.files, name, &ManifestEntry::name) == manifest_.files.end());
  ARBALEST_CHECK(std::exchange(usable_, false));
  manifest_.files.push_back(write_file(name, fill));
  usable_ = true;
}

void CheckpointWriter::add_text(std::string_view name, std::string_view text) {
  ARBALEST_CHECK(text.size() <= kMaxCheckpointTextBytes);
  add(name, [&](const Write& write) { write(std::as_bytes(std::span(text))); });
}

void CheckpointWriter::add_tensors(std::string_view name, std::span<const dataflow::NamedTensor> tensors,
                                   const std::map<std::string, std::string>& metadata) {
  add(name, [&](const Write& write) { put_safetensors(tensors, metadata, write); });
}

fs::path CheckpointWriter::commit() {
  ARBALEST_CHECK(std::exchange(usable_, false));
  const std::string text = print_manifest(manifest_);
  ARBALEST_CHECK(text.size() <= kMaxManifestBytes);
  write_file(kManifestFile, [&](const Write& write) { write(std::as_bytes(std::span(text))); });
  partial_.sync();
  const fs::path path = checkpoints_ / checkpoint_name(manifest_.batches);
  partial_.move_to(path);
  return path;
}

}  // namespace arbalest::jobs
