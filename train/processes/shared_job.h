// The job of a run of several processes.
#pragma once

#include <span>
#include <string>

#include "engine/process/world.h"
#include "options/job_options.h"
#include "options/text/source_text.h"

namespace arbalest::jobs {

// Rank 0 reads the file at `path`; all processes get its text. A call of World's operations. Throws SharedError if the
// file cannot be read.
SourceText read_shared_job_file(engine::process::World& world, const std::string& path);

// Each process makes its job of `source`, which all have: the same but for the
// devices, which are its share (device_share.h), and the learners, if their number follows from the devices. Sets the
// world's timeout and all-reduce. JobOptions::growth_error is not thrown, because a run may go on. A call of World's
// operations. Throws SharedError with the kinds of load_job's errors, also for jobs that several processes cannot run.
JobOptions load_shared_job(engine::process::World& world, const SourceText& source,
                           std::span<const std::string> overrides);
// Does the same with the file at `path`.
JobOptions load_shared_job(engine::process::World& world, const std::string& path,
                           std::span<const std::string> overrides);

}  // namespace arbalest::jobs
