// Models that no machine could hold, found before anything is allocated or multiplied.
#pragma once

#include <cstdint>

#include "dataflow/graph.h"
#include "dataflow/models/field_issues.h"

namespace arbalest::jobs {

// Adds an issue to the path "model" if a parameter, or a tensor for mini-batches of `batch_size`, has more than 2^30
// elements (4 GiB of float32).
void check_sizes(const dataflow::Graph& graph, std::int64_t batch_size, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
