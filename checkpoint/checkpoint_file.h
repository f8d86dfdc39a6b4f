// Writes one file of a checkpoint.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "checkpoint/manifest.h"

namespace arbalest::jobs {

using Write = std::function<void(std::span<const std::byte>)>;
// Passes the bytes of a file to `write`, piece by piece.
using Fill = std::function<void(const Write& write)>;

// Writes and syncs a new file. Returns its entry of the manifest. Throws as fail_write does.
ManifestEntry write_checkpoint_file(const std::filesystem::path& directory, std::string_view name, const Fill& fill);

}  // namespace arbalest::jobs
