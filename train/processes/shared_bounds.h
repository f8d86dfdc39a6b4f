// Limits of the number of learners that count the learners of all processes of a run.
#pragma once

#include "engine/process/world.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Sets JobOptions::learners_elsewhere. Lowers the upper bound of a tuned job as in one process, with a warning: until
// the scheme of synchronization is stable with the learners of all processes, and, if the job does not name that bound,
// until an epoch has enough mini-batches for a round. Throws SharedError if the job asks for more learners than may. A
// call of World's operations.
void share_bounds(engine::process::World& world, JobOptions& job);

}  // namespace arbalest::jobs
