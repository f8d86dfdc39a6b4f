// The data of a job: its checks, and what is left of it in plain values.
#pragma once

#include "arbalest/v1/data.pb.h"
#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

inline constexpr const char* kFractionPath = "data.validation.fraction";

// Reads `data`, which has its defaults and names a dataset. Adds what is wrong with it to `issues`, with paths in the
// job.
DataOptions read_data(const v1::Data& data, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
