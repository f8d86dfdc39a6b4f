// The files of a checkpoint that hold one learner each: "learner-0003.safetensors" has the replica of learner 3, such
// as "conv1.weight", and the vectors of its optimizer, such as "momentum/conv1.weight".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"
#include "scheduler/replicas/training_state.h"

namespace arbalest::jobs {

std::string learner_file(std::size_t learner);

// Passes the bytes of the file of a learner, whose vectors are here, to `write`.
void put_learner(const scheduler::TrainingState& training, std::size_t learner, const Write& write);

// These give a learner of `training` its vectors: from a checkpoint, or from the bytes of its file, `size` of them,
// which `read` brings piece by piece. Both throw kCheckpoint.
void read_learner(const Checkpoint& checkpoint, std::size_t learner, scheduler::TrainingState& training);
void parse_learner(std::uint64_t size, const std::function<void(std::span<std::byte>)>& read, std::size_t learner,
                   scheduler::TrainingState& training);

}  // namespace arbalest::jobs
