// The processes of a sparse run tell each other these things, outside of the solver. All functions call World's
// operations, so all processes call them in the same order.
#pragma once

#include <string>

#include "engine/process/world.h"
#include "scheduler/sparse/proximal_solver.h"
#include "train/sparse/sparse_methods.h"

namespace arbalest::jobs {

// The place of this process's learners among those of all. `world` must outlive the result's use.
scheduler::ProximalShare share_of_learners(engine::process::World& world, int own_learners);

// Throws a SharedError of kind kData if a process has another training set than rank 0. `digest`: of its rows.
void require_same_rows(engine::process::World& world, const std::string& digest);

// The scores of the model, which all processes have, on the test set, which rank 0 has.
Scores test_on_rank_0(engine::process::World& world, const SparseMethod& method);

}  // namespace arbalest::jobs
