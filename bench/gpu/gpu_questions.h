// The questions that gpu_bench answers, each a subcommand. A subcommand's callback measures and prints one line of
// JSON. If there is no such GPU, it ends the program (gpu.h).
#pragma once

#include <CLI/App.hpp>

namespace arbalest::bench {

// launch: how much longer does a learner's step take than as many empty kernels as it has nodes?
void add_launch(CLI::App& app);

// learners: how does a GPU's throughput grow with the number of learners, and what do averaging and the host cost?
void add_learners(CLI::App& app);

}  // namespace arbalest::bench
