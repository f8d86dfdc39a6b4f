// The learners that each process needs of a saved run.
#pragma once

#include <vector>

#include "checkpoint/saved_run.h"
#include "engine/process/world.h"

namespace arbalest::jobs {

// Each process reads the learners that it goes on with from SavedRun::source, whose other files all have. A process
// that does not see the same checkpoint there, or cannot read it, gets them from rank 0, one learner at a time. None
// are needed if the number of all learners has changed. `per_device`: learners of this process. A call of World's
// operations. Throws SharedError of kind kCheckpoint if rank 0 cannot read a learner.
void read_own_learners(engine::process::World& world, const std::vector<int>& per_device, SavedRun& saved);

}  // namespace arbalest::jobs
