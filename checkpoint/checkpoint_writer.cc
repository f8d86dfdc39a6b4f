#include "checkpoint/checkpoint_writer.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/checkpoint_file.h"
#include "engine/base/error.h"
#include "saved_model/atomic_file.h"
#include "saved_model/safetensors.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

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

void CheckpointWriter::add(std::string_view name, const Fill& fill) {
  add_entry(name, [&] { return write_checkpoint_file(partial_.path(), name, fill); });
}

void CheckpointWriter::add_written(const ManifestEntry& entry) {
  add_entry(entry.name, [&] {
    verify_file(partial_.path(), entry);
    return entry;
  });
}

void CheckpointWriter::add_copy(const Checkpoint& checkpoint, std::string_view name) {
  add(name, [&](const Write& write) { stream_file(checkpoint, name, write); });
}

void CheckpointWriter::add_entry(std::string_view name, const std::function<ManifestEntry()>& make) {
  ARBALEST_CHECK(is_checkpoint_file_name(name));
  ARBALEST_CHECK(std::ranges::find(manifest_.files, name, &ManifestEntry::name) == manifest_.files.end());
  ARBALEST_CHECK(std::exchange(usable_, false));
  manifest_.files.push_back(make());
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
  write_checkpoint_file(partial_.path(), kManifestFile,
                        [&](const Write& write) { write(std::as_bytes(std::span(text))); });
  partial_.sync();
  const fs::path path = checkpoints_ / checkpoint_name(manifest_.batches);
  partial_.move_to(path);
  return path;
}

}  // namespace arbalest::jobs
