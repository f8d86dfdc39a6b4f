// Jobs of impossible size, found before anything is allocated or multiplied.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/graph.h"

namespace arbalest::jobs {

struct SizeIssue {
  std::string layer;    // its name
  std::string message;  // names the layer
};

// The parameters, and the tensors for mini-batches of `batch_size`, that have more than 2^30 elements (4 GiB of
// float32); of tensors that feed each other, the first.
std::vector<SizeIssue> check_sizes(const dataflow::Graph& graph, std::int64_t batch_size);

// What is wrong if a round, `period` mini-batches of each learner, is longer than an epoch of `batches`; else "".
std::string check_round(int learners, int period, std::int64_t batches);

}  // namespace arbalest::jobs
