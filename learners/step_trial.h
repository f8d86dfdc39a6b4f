// Times training steps before a run: the same work as in the run, on zeros.
#pragma once

#include "learners/learner_pool.h"

namespace arbalest::learners {

// Seconds of a training step of one of the pool's teams, with copies of its mini-batches from host memory: the median
// of up to five after a first one that is not counted, of which slow models take fewer. The pool, whose learners need
// not exist, has no data on the device. Blocks the host; the team is freed before the return. Throws kOutOfMemory, and
// errors of the device.
double time_step(const LearnerPool& pool);

}  // namespace arbalest::learners
