// The part of a job that decides how many learners train it fastest.
#pragma once

#include <nlohmann/json.hpp>

#include "options/job_options.h"

namespace arbalest::jobs {

// The key holds the model layer by layer (from the zoo or listed) and how it is fed, computed, updated and averaged. It
// leaves out the devices, and values that do not affect speed, such as learning rates. Two jobs with the same key do
// the same work in a step.
nlohmann::ordered_json throughput_key(const JobOptions& job);

}  // namespace arbalest::jobs
