// resumed_from.txt: the checkpoint of another run that a run goes on from. It is written before anything is trained, so
// a run that is killed before its first checkpoint can still go on from there.
#pragma once

#include <filesystem>
#include <optional>

namespace arbalest::jobs {

// Throws as fail_write does (saved_model/atomic_file.h).
void write_origin(const std::filesystem::path& run, const std::filesystem::path& checkpoint);

// Returns the checkpoint, an absolute path; nothing if the run has begun by itself. A process that was killed while it
// wrote the file may have left it under its partial name, which is read, too. Throws kUsage if the file is none, such
// as a pipe.
std::optional<std::filesystem::path> read_origin(const std::filesystem::path& run);

// Whether `checkpoint` is `given`, or one of the run `given`.
bool is_at_or_in(const std::filesystem::path& checkpoint, const std::filesystem::path& given);

}  // namespace arbalest::jobs
