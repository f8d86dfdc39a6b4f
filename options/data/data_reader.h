// Checks the data of a job and reads it into options.
#pragma once

#include "arbalest/v1/data.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Reads `data`, which must have its defaults and name a dataset. Adds issues with paths in the job.
DataOptions read_data(const v1::Data& data, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
