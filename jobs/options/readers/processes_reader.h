// Reads `processes { ... }` of a job file.
#pragma once

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Writes the defaults into `processes`.
void fill_processes(v1::Processes& processes);

// `processes` must have its defaults.
ProcessOptions read_processes(const v1::Processes& processes, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
