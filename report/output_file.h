// A file that the user names with an option such as --output. It replaces what has its name, so names that would
// destroy something are refused.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "saved_model/atomic_file.h"

namespace arbalest::jobs {

// Throws kUsage, naming `option`, if a run writes files of this name itself: in `run`, in another directory that holds
// a run (a job.txtpb), or in a checkpoint. `run`: a directory that may have no files yet; "": there is none.
void refuse_run_file(const std::string& option, const std::filesystem::path& path,
                     const std::filesystem::path& run = {});

// Opens the file for writing, and removes what killed processes have left of it. Throws kUsage, naming `option`, if the
// name is that of a run's own file, or of something that is no regular file, or if the file cannot be made. Throws
// kOutOfMemory if the disk is full.
std::unique_ptr<AtomicFile> open_output_file(const std::string& option, const std::filesystem::path& path);

}  // namespace arbalest::jobs
