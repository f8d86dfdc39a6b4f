// The processes of a run find these out together, at points that all of them reach.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/process/world.h"
#include "scheduler/replicas/diverged.h"
#include "scheduler/scheduler.h"

namespace arbalest::jobs {

// All functions are calls of World's operations; every process makes them. A single process gets its own values.

// The sum of all processes' results, in order of ranks.
scheduler::Progress sum_over(engine::process::World& world, const scheduler::Progress& own);

// Throws the divergence of the first process that has one.
void throw_divergence(engine::process::World& world, const std::optional<scheduler::Diverged>& own);

// The lists of all processes, one after the other.
std::vector<int> join(engine::process::World& world, const std::vector<int>& own);

// The warnings of all processes: those of this one, and those that only other ranks have, with their rank.
std::vector<std::string> warnings_of_all(engine::process::World& world, const std::vector<std::string>& own);

// The error of one of several processes, which all of them throw, and rank 0 reports.
class SharedError final : public engine::Error {
 public:
  using Error::Error;
};

// Runs `step` on every process. If it throws on some, all throw a SharedError: that of the first of them, with its rank
// and host. A single process throws its error as it is.
void together(engine::process::World& world, const std::function<void()>& step);

}  // namespace arbalest::jobs
