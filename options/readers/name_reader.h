// The name of a job, which also names the directory of its runs.
#pragma once

#include <string>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"

namespace arbalest::jobs {

// Checks and returns the job's name.
std::string read_name(const v1::Job& job, dataflow::FieldIssues& issues);

// The name of a job that has none: that of its file, "lenet" for "jobs/lenet.txtpb".
std::string name_after(const std::string& file);

}  // namespace arbalest::jobs
