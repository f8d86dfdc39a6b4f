// Reads the job of a run in order to evaluate the run's model on this machine.
#pragma once

#include <span>
#include <string>

#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Reads the job file at `path` that a run has left. `devices`: devices on which to evaluate, named as in a job; if
// empty, the job's own devices if this machine has them, else its default devices. On other devices than the job's own,
// the number of learners is the devices' default, because evaluation does not depend on it. A warning tells if the
// devices are neither the job's nor given. Throws as load_job does, and ErrorKind::kUsage if this machine lacks one of
// `devices`.
JobOptions load_for_evaluation(const std::string& path, std::span<const std::string> devices);

}  // namespace arbalest::jobs
