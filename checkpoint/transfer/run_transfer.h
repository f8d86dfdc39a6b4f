// Gives all processes of a run its saved state.
#pragma once

#include "checkpoint/saved_run.h"
#include "engine/process/world.h"

namespace arbalest::jobs {

// On every rank, `saved` becomes what it is on rank 0, without SavedRun::model and the vectors of the learners. Each
// process must call it.
void broadcast_run(engine::process::World& world, SavedRun& saved);

}  // namespace arbalest::jobs
