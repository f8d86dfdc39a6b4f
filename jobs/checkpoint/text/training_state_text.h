// The scalars of a scheduler's state in the text of a run's state.
#pragma once

#include <cstdint>

#include "arbalest/v1/run_state.pb.h"
#include "scheduler/training_state.h"

namespace arbalest::jobs {

v1::RunState::Training to_proto(const scheduler::TrainingState& training);
// Returns a state without vectors, but with as many learners as the message has. `batches`: position in the data.
scheduler::TrainingState from_proto(const v1::RunState::Training& message, std::uint64_t batches);

}  // namespace arbalest::jobs
