// Reads `checkpoint { ... }` of a job file: when a run saves its state.
#pragma once

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// `checkpoint` must have its defaults.
CheckpointOptions read_checkpoint(const v1::Checkpoint& checkpoint, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
