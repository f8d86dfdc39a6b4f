// The lock that shows that a process is training in a directory: it holds the lock on the run's metrics.jsonl while it
// lives. File systems without locks show nothing.
#pragma once

#include <filesystem>
#include <optional>

namespace arbalest::jobs {

// Whether a process, perhaps this one, holds the lock on `file` through another descriptor.
bool is_locked(const std::filesystem::path& file);

// Whether a process is training in `directory` at present.
bool is_running(const std::filesystem::path& directory);

// The process that is training in `directory`; none if there is none, or if the system does not tell.
std::optional<int> running_process(const std::filesystem::path& directory);

}  // namespace arbalest::jobs
