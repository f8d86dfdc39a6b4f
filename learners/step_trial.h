// Times training steps before a run: the same work as in the run, on zeros.
#pragma once

#include "learners/learner_pool.h"

namespace arbalest::learners {

// Returns the seconds that one of the pool's teams needs for a training step, divided by its mini-batches, which are
// copied from host memory. It is the median of up to five steps (fewer of slow models) after one that is not counted.
// The pool, whose learners need
// not exist, has no data on the device. Blocks the host; the team is freed before the return. Throws kOutOfMemory, and
// errors of the device.
double time_step(const LearnerPool& pool);

}  // namespace arbalest::learners
