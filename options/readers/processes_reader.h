// Reads `processes { ... }` of a job file.
#pragma once

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// `processes` must have its defaults; those of a job without an all-reduce suffice for one.
ProcessOptions read_processes(const v1::Processes& processes, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
