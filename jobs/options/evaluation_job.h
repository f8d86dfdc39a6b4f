// The job of a run, to evaluate its model on the machine that is at hand.
#pragma once

#include <span>
#include <string>

#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Reads the job file at `path` that a run has left. `devices`: names as in a job, where to evaluate; if there are none,
// the job's own where this machine has them, else what it has. Elsewhere than in training, learners are as many as
// suits the devices, for a test does not depend on them. The warnings tell if the devices are neither the job's nor
// given. Throws as load_job does; ErrorKind::kUsage if `devices` are not here.
JobOptions load_for_evaluation(const std::string& path, std::span<const std::string> devices);

}  // namespace arbalest::jobs
