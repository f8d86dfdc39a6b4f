// From a job file to options.
#pragma once

#include <span>
#include <string>

#include "jobs/options/job_options.h"
#include "jobs/options/source_text.h"

namespace arbalest::jobs {

// Reads and checks the job file at `path`, changed by `overrides` ("training.batch_size=16", see overrides.h).
// Throws ErrorKind::kInvalidJob with everything that is wrong, each as "file:line:column: error: message" and the line
// itself; ErrorKind::kUsage if all that is wrong comes from overrides, each as "--set path=value: message".
JobOptions load_job(const std::string& path, std::span<const std::string> overrides = {});

// The same for text that is in memory.
JobOptions parse_job(const SourceText& source, std::span<const std::string> overrides = {});

}  // namespace arbalest::jobs
