// Reads the job of a run in order to evaluate the run's model on this machine.
#pragma once

#include <span>
#include <string>

#include "options/job_options.h"

namespace arbalest::jobs {

// Reads the job file at `path` that a run has left. `devices`: devices on which to evaluate, named as in a job; if
// empty, the job's own devices if this machine has them, else its default devices. On other devices than the job's own,
// the number of learners is the devices' default, because evaluation does not depend on it. A warning tells if the
// devices are neither the job's nor given. Throws as load_job does, and ErrorKind::kUsage if this machine lacks one of
// `devices`.
JobOptions load_for_evaluation(const std::string& path, std::span<const std::string> devices);

// Returns whether the job file at `path` trains without mini-batches (options/sparse), so that its runs have no
// checkpoints. False if the text is malformed. Throws ErrorKind::kInvalidJob if the file cannot be read.
bool is_sparse_job_file(const std::string& path);

}  // namespace arbalest::jobs
