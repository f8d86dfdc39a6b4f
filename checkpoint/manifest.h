// The file manifest.txtpb of a checkpoint (proto/arbalest/v1/checkpoint.proto). It is written last: a directory without
// a valid manifest is no checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace google::protobuf {
class Message;
}

namespace arbalest::jobs {

inline constexpr const char* kManifestFile = "manifest.txtpb";
inline constexpr std::uint32_t kCheckpointFormat = 1;
inline constexpr std::size_t kMaxManifestBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxCheckpointTextBytes = std::size_t{64} << 20;  // of every other text file

// A file of a checkpoint, as the manifest describes it.
struct ManifestEntry {
  std::string name;
  std::uint64_t size = 0;
  std::string xxh3_128;  // 32 lower-case hexadecimal digits
};

struct Manifest {
  std::uint64_t batches = 0;
  std::vector<ManifestEntry> files;
};

// Whether a file of a checkpoint may have this name: at most 100 letters, digits, '.', '_' and '-', the first one a
// letter or digit, and not the manifest's name.
bool is_checkpoint_file_name(std::string_view name);

std::string print_manifest(const Manifest& manifest);

// A manifest of a newer format. It is not damaged.
class NewerFormat final : public engine::Error {
 public:
  using Error::Error;
};

// Reads what print_manifest has written. Every other text is refused: throws ErrorKind::kCheckpoint without naming the
// file; NewerFormat if that is the reason.
Manifest parse_manifest(const std::string& text);

// Reads protobuf text into the empty `message`. Throws ErrorKind::kCheckpoint with all mistakes in the form of a
// compiler, "name:line:column: error: ...".
void parse_checkpoint_text(const std::string& name, const std::string& text, google::protobuf::Message& message);

}  // namespace arbalest::jobs
