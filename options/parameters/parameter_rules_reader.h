// Reads the rules for single parameters: training.freeze and learning_rate.multiplier.
#pragma once

#include <memory>

#include "arbalest/v1/job.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/fields/field_issues.h"

namespace arbalest::jobs {

// Returns the graph under the job's rules; `graph` itself if the job has none, or if there are issues. `graph` may be
// null. Adds issues with paths in the job.
std::shared_ptr<const dataflow::Graph> read_parameter_rules(const v1::Job& job,
                                                            std::shared_ptr<const dataflow::Graph> graph,
                                                            dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
