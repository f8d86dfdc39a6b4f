// Loads a job file into options.
#pragma once

#include <span>
#include <string>

#include "options/job_options.h"
#include "options/text/source_text.h"

namespace arbalest::jobs {

// Reads and checks the job file at `path`, changed by `overrides` ("training.batch_size=16", see overrides.h). Syntax
// errors are reported first, up to the first one from which the parser cannot recover; then all semantic errors at
// once. Throws ErrorKind::kInvalidJob with all of them, each as "file:line:column: error: message" and the line itself,
// or as "--set path=value: error: message" if an override causes it; ErrorKind::kUsage if overrides cause all of them.
JobOptions load_job(const std::string& path, std::span<const std::string> overrides = {});

// The same for text that was read before.
JobOptions load_job(const SourceText& source, std::span<const std::string> overrides);

// Throws ErrorKind::kInvalidJob if the file cannot be read or is not text.
SourceText read_job_file(const std::string& path);

// As load_job, for text in memory, but JobOptions::growth_error is not thrown: the text may be that of a run that has
// begun with an earlier version. The warnings about synchronization do not name places in the text.
JobOptions parse_job(const SourceText& source, std::span<const std::string> overrides = {});

// Returns the job as text, changed by `overrides`, with the layers of a zoo model listed one by one. Throws as
// parse_job does.
std::string expand_job(const SourceText& source, std::span<const std::string> overrides = {});

// Returns the job with `per_device` learners on each device, for when the default number does not fit. `why` comes
// before the job's warnings. What a run has changed in the job stays.
JobOptions with_learners(const JobOptions& job, int per_device, const std::string& why);

// Gives a job with precision AUTO the precision that was chosen, in its text, too.
void set_precision(JobOptions& job, engine::Precision precision);

// Returns the text of a job (JobOptions::resolved_text) whose learners follow `schedule`, which begins at mini-batch 0,
// in teams of up to `team`; 0: as the job says.
std::string with_schedule(const std::string& job_text, std::span<const LearnerStep> schedule, int team = 0);

}  // namespace arbalest::jobs
