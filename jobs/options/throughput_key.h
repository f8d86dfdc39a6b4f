// What of a job decides how many learners train it fastest.
#pragma once

#include <nlohmann/json.hpp>

#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// The model layer by layer, whether it is of the zoo or listed, and how it is fed, computed, updated and averaged; not
// the devices, and not the values that cost nothing, such as learning rates. Two jobs with the same key do the same
// work in a step.
nlohmann::ordered_json throughput_key(const JobOptions& job);

}  // namespace arbalest::jobs
