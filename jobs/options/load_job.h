// From a job file to options.
#pragma once

#include <span>
#include <string>

#include "jobs/options/job_options.h"
#include "jobs/options/source_text.h"

namespace arbalest::jobs {

// Reads and checks the job file at `path`, changed by `overrides` ("training.batch_size=16", see overrides.h).
// Throws ErrorKind::kInvalidJob with everything that is wrong, each as "file:line:column: error: message" and the line
// itself, or as "--set path=value: error: message" if it comes from an override; ErrorKind::kUsage if all does. Whether
// the values are right is asked once the whole file is well formed.
JobOptions load_job(const std::string& path, std::span<const std::string> overrides = {});

// Throws ErrorKind::kInvalidJob if it cannot be read, or is no text.
SourceText read_job_file(const std::string& path);

// The same as load_job for text that is in memory.
JobOptions parse_job(const SourceText& source, std::span<const std::string> overrides = {});

// What the job says, changed by `overrides`, with the layers of a model of the zoo listed one by one: a text of the
// same job. Throws as parse_job does.
std::string expand_job(const SourceText& source, std::span<const std::string> overrides = {});

// The same job with `per_device` learners on each device, for where the number that follows from the devices is not the
// user's and does not fit. Its warnings begin with `why`.
JobOptions with_learners(const JobOptions& job, int per_device, const std::string& why);

// The text of a job (JobOptions::resolved_text) whose learners follow `schedule`, which begins at mini-batch 0.
std::string with_schedule(const std::string& job_text, std::span<const LearnerStep> schedule);

}  // namespace arbalest::jobs
