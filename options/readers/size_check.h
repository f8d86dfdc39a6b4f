// Finds jobs of impossible size before anything is allocated or multiplied.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/graph.h"
#include "sma/options.h"

namespace arbalest::jobs {

struct SizeIssue {
  std::string layer;    // name of the layer
  std::string message;  // names the layer
};

// Issues for the parameters, and for the tensors of mini-batches of `batch_size`, that have more than 2^30 elements (4
// GiB as float32). Of tensors that feed each other, only the first is reported.
std::vector<SizeIssue> check_sizes(const dataflow::Graph& graph, std::int64_t batch_size);

// Describes the issue if the scheme's period, of each learner, is longer than an epoch of `batches`; else "".
std::string check_round(int learners, const sma::Options& scheme, std::int64_t batches);

}  // namespace arbalest::jobs
