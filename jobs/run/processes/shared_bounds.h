// Limits of the number of learners that count the learners of all processes of a run.
#pragma once

#include <cstdint>
#include <string>

#include "engine/process/world.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Sets JobOptions::learners_elsewhere. Lowers the upper bound of a tuned job, with a warning, until the learners of all
// processes may train together. Throws SharedError if the job asks for more learners than may. A call of World's
// operations.
void share_bounds(engine::process::World& world, JobOptions& job);

// Describes the first round of `learners` learners that is longer than an epoch of `batches`; "" if there is none.
std::string long_round(const JobOptions& job, int learners, std::int64_t batches);

}  // namespace arbalest::jobs
