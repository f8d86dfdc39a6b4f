// Reads the schedule of a job's learning rate: the curve after the warm-up.
#pragma once

#include "arbalest/v1/learning_rate.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "scheduler/replicas/learning_rate.h"

namespace arbalest::jobs {

// Sets the missing epochs of a schedule with an end to `left`, those from the end of the warm-up to that of the job.
void fill_curve(v1::LearningRate& rate, double left);

// Reads the schedule; `rate` must have its defaults. `warm_up`: epochs of the warm-up. Adds issues with paths in the
// job; if there are any, the result must not be used.
scheduler::LearningRateCurve read_curve(const v1::LearningRate& rate, double warm_up, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
