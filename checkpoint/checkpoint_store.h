// The directory that holds a run's checkpoints, one directory each. What is on disk is the only state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace arbalest::jobs {

// Checkpoints here are directories whose names are numbers of at least 12 digits. Their order is that of `batches` in
// their manifests. Other entries, symbolic links among them, are ignored. Only one process may use these functions on a
// directory at a time.

// The newest checkpoint that verifies; none if there is no such checkpoint or no such directory. A damaged one that is
// newer gets the name `<number>.damaged` (`.damaged-2` if that is taken), which `warn` is told. Throws
// ErrorKind::kCheckpoint for a newer one that is not damaged but cannot be used: of a newer format, or unreadable; and
// if `checkpoints` cannot be read.
// kKeep: a damaged one keeps its name, because the directory is another run's.
enum class Damaged { kRename, kKeep };
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& checkpoints,
                                            const std::function<void(const std::string&)>& warn,
                                            Damaged damaged = Damaged::kRename);

// The checkpoints whose manifest verifies, oldest first; their other files are not looked at. None if there is no such
// directory. Throws as newest_checkpoint does if `checkpoints` cannot be read.
std::vector<Checkpoint> list_checkpoints(const std::filesystem::path& checkpoints);

// Gives the checkpoint or file at `path` the name `<path>.<ending>`, with a number behind it if that is taken, so that
// it is passed over from now on. Returns the new path. Throws as fail_write does.
std::filesystem::path set_aside(const std::filesystem::path& path, std::string_view ending);

// Removes `.partial-*` directories whose process is gone, and nothing else. What cannot be removed stays.
void sweep_partial(const std::filesystem::path& checkpoints);

// Keeps the newest `keep_last` checkpoints that verify, and those whose number of batches is in `kept`; deletes the
// others. Deletes nothing unless `keep_last` (at least 1) verify, so the newest verified one always stays. A checkpoint
// is deleted by giving it a partial name, then removing the manifest, then the other files. A damaged one is renamed as
// by newest_checkpoint. One that cannot be read or deleted stays, and `warn` is told its path. Throws as fail_write
// does if the directory cannot be synced.
void retain(const std::filesystem::path& checkpoints, int keep_last, std::span<const std::uint64_t> best,
            const std::function<void(const std::string&)>& warn);

}  // namespace arbalest::jobs
