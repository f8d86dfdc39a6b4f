// Claims the directory of a run, so that no other process trains there.
#pragma once

#include <filesystem>

namespace arbalest::jobs {

// The treatment of a directory that holds a run.
enum class ExistingRun { kRefuse, kContinue };

// Creates metrics.jsonl in `directory`, or with kContinue opens it, and locks it. Returns its descriptor for reading
// and appending. Throws ErrorKind::kUsage if a process is training there, if the directory holds a run already
// (kRefuse), if it is a folder of runs, or if no file can be written there.
int claim_run(const std::filesystem::path& directory, ExistingRun existing);

}  // namespace arbalest::jobs
