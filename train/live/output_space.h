// Checks before training whether a run's model and checkpoints will fit on the disk.
#pragma once

#include <cstdint>
#include <filesystem>

#include "dataflow/graph.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Size of a file with the graph's parameters, without its header.
std::int64_t model_bytes(const dataflow::Graph& graph);

// Throws kOutOfMemory if the file system of `directory` has less room than the models, the checkpoints and a reserve
// for the run's other files. A file system that does not report its free space passes; an error then shows when
// writing.
void check_output_space(const std::filesystem::path& directory, const JobOptions& job);

}  // namespace arbalest::jobs
