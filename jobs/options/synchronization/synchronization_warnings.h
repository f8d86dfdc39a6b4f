// Warnings about settings of `synchronization` that work and may surprise.
#pragma once

#include <string>
#include <vector>

#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// With the learners of all processes, as far as they are known (JobOptions::learners_elsewhere).
std::vector<std::string> synchronization_warnings(const JobOptions& options);

}  // namespace arbalest::jobs
