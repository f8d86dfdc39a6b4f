#include "checkpoint/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/xxh3.h"
#include "saved_model/regular_file.h"
#include "saved_model/safetensors.h"

namespace arbalest::jobs {

using engine::ErrorKind;
namespace fs = std::filesystem;

namespace {

// Whether an errno tells that the file is lost, and not that this process cannot read it now.
bool is_damage(int error) {
  return error == 0 || error == ENOENT || error == ENOTDIR || error == ELOOP || error == EISDIR || error == ENXIO ||
         error == EIO;
}

class OpenDirectory {
 public:
  explicit OpenDirectory(const fs::path& path) : handle_(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (handle_ >= 0) return;
    engine::fail(ErrorKind::kCheckpoint,
                 "cannot read the checkpoint '{}': {}; a checkpoint is a directory that this user may read",
                 path.string(), std::strerror(errno));
  }
  ~OpenDirectory() { close(handle_); }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;

  int handle() const { return handle_; }

 private:
  int handle_;
};

[[noreturn]] void fail_damaged(const fs::path& path, std::string_view name, std::string_view problem) {
  throw DamagedCheckpoint(
      fmt::format("cannot use the checkpoint '{}': {}: {}; use another checkpoint, or restore the "
                  "file from a copy",
                  path.string(), name, problem));
}

// Calls `use` with the opened file. Adds the path and the fix to errors.
template <typename Use>
auto with_file(const fs::path& path, const std::string& name, Use use) {
  const OpenDirectory directory(path);
  try {
    RegularFile file(directory.handle(), name.c_str());
    return use(file);
  } catch (const FileError& error) {
    if (is_damage(error.error())) fail_damaged(path, name, error.what());
    engine::fail(ErrorKind::kCheckpoint, "cannot read '{}': {}; make it readable, or use another checkpoint",
                 (path / name).string(), error.what());
  } catch (const NewerFormat& error) {
    throw NewerFormat(error.kind(), fmt::format("cannot use the checkpoint '{}': {}; use that newer version, or "
                                                "another checkpoint",
                                                path.string(), error.what()));
  } catch (const engine::Error& error) {
    if (error.kind() != ErrorKind::kCheckpoint) throw;
    fail_damaged(path, name, error.what());
  }
}

std::string read_all(RegularFile& file) {
  std::string text(file.size(), '\0');
  file.read(std::as_writable_bytes(std::span(text)));
  return text;
}

void check_size(const RegularFile& file, const ManifestEntry& entry) {
  if (file.size() == entry.size) return;
  engine::fail(ErrorKind::kCheckpoint, "it has {} bytes, but the manifest says {}", file.size(), entry.size);
}

void check_hash(const Xxh3& hash, const ManifestEntry& entry) {
  const std::string found = hash.finish();
  if (found == entry.xxh3_128) return;
  engine::fail(ErrorKind::kCheckpoint, "its XXH3-128 is {}, but the manifest says {}", found, entry.xxh3_128);
}

void stream(const fs::path& path, const ManifestEntry& entry, const Write& write) {
  with_file(path, entry.name, [&](RegularFile& file) {
    check_size(file, entry);
    Xxh3 hash;
    std::vector<std::byte> buffer(std::min(entry.size, std::uint64_t{1} << 20));
    for (std::uint64_t left = entry.size; left > 0;) {
      const std::span<std::byte> part = std::span(buffer).first(std::min(left, std::uint64_t{buffer.size()}));
      file.read(part);
      hash.update(part);
      if (write) write(part);
      left -= part.size();
    }
    check_hash(hash, entry);
  });
}

}  // namespace

const ManifestEntry& entry_of(const Checkpoint& checkpoint, std::string_view name) {
  const auto entry = std::ranges::find(checkpoint.files, name, &ManifestEntry::name);
  if (entry == checkpoint.files.end()) fail_damaged(checkpoint.path, name, "the manifest does not list it");
  return *entry;
}

bool Checkpoint::has(std::string_view name) const {
  return std::ranges::find(files, name, &ManifestEntry::name) != files.end();
}

Checkpoint read_checkpoint_manifest(const fs::path& path) {
  return with_file(path, kManifestFile, [&](RegularFile& file) {
    if (file.size() > kMaxManifestBytes) {
      engine::fail(ErrorKind::kCheckpoint, "it has {} bytes, more than a manifest may have", file.size());
    }
    Manifest manifest = parse_manifest(read_all(file));
    return Checkpoint{.path = path, .batches = manifest.batches, .files = std::move(manifest.files)};
  });
}

Checkpoint open_checkpoint(const fs::path& path) {
  Checkpoint checkpoint = read_checkpoint_manifest(path);
  for (const ManifestEntry& entry : checkpoint.files) verify_file(path, entry);
  return checkpoint;
}

void verify_file(const fs::path& path, const ManifestEntry& entry) { stream(path, entry, {}); }

void stream_file(const Checkpoint& checkpoint, std::string_view name, const Write& write) {
  stream(checkpoint.path, entry_of(checkpoint, name), write);
}

std::string read_text(const Checkpoint& checkpoint, std::string_view name) {
  const ManifestEntry& entry = entry_of(checkpoint, name);
  return with_file(checkpoint.path, entry.name, [&](RegularFile& file) {
    check_size(file, entry);
    if (entry.size > kMaxCheckpointTextBytes) {
      engine::fail(ErrorKind::kCheckpoint, "it has {} bytes, more than a text may have", entry.size);
    }
    std::string text = read_all(file);
    Xxh3 hash;
    hash.update(std::as_bytes(std::span(text)));
    check_hash(hash, entry);
    return text;
  });
}

std::vector<dataflow::NamedTensor> read_tensors(const Checkpoint& checkpoint, std::string_view name) {
  const ManifestEntry& entry = entry_of(checkpoint, name);
  return with_file(checkpoint.path, entry.name, [&](RegularFile& file) {
    check_size(file, entry);
    Xxh3 hash;
    std::vector<dataflow::NamedTensor> tensors = parse_safetensors(file.size(), [&](std::span<std::byte> bytes) {
      file.read(bytes);
      hash.update(bytes);
    });
    check_hash(hash, entry);
    return tensors;
  });
}

void read_message(const Checkpoint& checkpoint, std::string_view name, google::protobuf::Message& message) {
  parse_checkpoint_text((checkpoint.path / name).string(), read_text(checkpoint, name), message);
}

}  // namespace arbalest::jobs
