// The answer of `arbalest tune`, from what it has measured.
#pragma once

#include "study/tune.h"

namespace arbalest::jobs {

// Chooses among result.sweep, or else result.points, the fewest learners that are surely within 3 % of the best, and
// sets `chosen`, `images_per_second`, `reason`, `gain`, `regret` and `regret_error`. If the machine was busy, images
// per processor second decide, times the cores that the threads can use: examples per second of wall-clock time then
// say more about the other programs. The gain is then without the time that threads of a learner used in vain, while
// one of them had no core. If that cannot be told, it is a lower bound from one learner with one thread, or none.
void answer(TuneResult& result);

}  // namespace arbalest::jobs
