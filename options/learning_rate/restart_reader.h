// Reads the warm restarts of a job's learning rate.
#pragma once

#include <vector>

#include "arbalest/v1/learning_rate.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "scheduler/replicas/learning_rate.h"

namespace arbalest::jobs {

// Sets the missing epochs of the restarts: each schedule ends at the next restart, and the last one
// after `max_epochs`.
void fill_restarts(v1::LearningRate& rate, int max_epochs);

// Reads the restarts; `rate` must have its defaults. `warm_up`: epochs of the warm-up. Adds issues with paths in the
// job; if there are any, the result must not be used.
std::vector<scheduler::Restart> read_restarts(const v1::LearningRate& rate, double warm_up,
                                              dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
