// Moves the state of a run between its processes.
#pragma once

#include "engine/process/world.h"
#include "jobs/checkpoint/saved_run.h"

namespace arbalest::jobs {

// These are calls of World's operations; all processes make them.

// On rank 0, `training` gets the learners of all processes, in order of their numbers. On the others it is left without
// learners.
void gather_learners(engine::process::World& world, scheduler::TrainingState& training);

// On every rank, `saved` becomes what it is on rank 0, but for SavedRun::model, which the other ranks do not get.
void broadcast_run(engine::process::World& world, SavedRun& saved);

}  // namespace arbalest::jobs
