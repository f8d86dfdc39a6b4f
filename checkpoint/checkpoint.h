// Reads a checkpoint without trusting it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/manifest.h"
#include "dataflow/parameter_layout.h"
#include "engine/base/error.h"

namespace arbalest::jobs {

// The files are not as they were written. An older checkpoint may still be whole. All other errors (a newer format, a
// directory that cannot be read) are no damage, so nothing may be done about the files. Of kind kCheckpoint.
class DamagedCheckpoint final : public engine::Error {
 public:
  explicit DamagedCheckpoint(const std::string& what) : Error(engine::ErrorKind::kCheckpoint, what) {}
};

struct Checkpoint {
  std::filesystem::path path;
  std::uint64_t batches = 0;  // mini-batches done when it was written
  std::vector<ManifestEntry> files;

  bool has(std::string_view name) const;
};

// All functions throw ErrorKind::kCheckpoint, naming the file, the problem and the fix; DamagedCheckpoint if the
// problem is damage. Files must be regular ones; symbolic links in the directory are not followed. The name of the
// directory does not matter, so a checkpoint may be copied and moved. Other files beside those of the manifest are
// ignored.

// Verifies the manifest only.
Checkpoint read_checkpoint_manifest(const std::filesystem::path& path);

// Verifies the manifest, and the size and XXH3-128 of every file.
Checkpoint open_checkpoint(const std::filesystem::path& path);

// Verifies the size and XXH3-128 of one file in the directory `path`.
void verify_file(const std::filesystem::path& path, const ManifestEntry& entry);

// The entry of a file. Throws DamagedCheckpoint if there is none.
const ManifestEntry& entry_of(const Checkpoint& checkpoint, std::string_view name);

// These verify the file once more while they read it.
// Passes the bytes to `write`. An error of the file may come after some of them.
void stream_file(const Checkpoint& checkpoint, std::string_view name, const Write& write);
std::string read_text(const Checkpoint& checkpoint, std::string_view name);
// The tensors in the order in which they were added.
std::vector<dataflow::NamedTensor> read_tensors(const Checkpoint& checkpoint, std::string_view name);

// Reads protobuf text into the empty `message`.
void read_message(const Checkpoint& checkpoint, std::string_view name, google::protobuf::Message& message);

}  // namespace arbalest::jobs
