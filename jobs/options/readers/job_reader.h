// Reads the job schema into options and collects all mistakes in a job.
#pragma once

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Reads `job`, which must have its defaults (fill_defaults). Writes the number of learners per device into it if that
// is missing and equal for all devices. Adds issues with paths in the job; if there are any, the result must not be
// used. Does not set resolved_text.
JobOptions read_job(v1::Job& job, dataflow::FieldIssues& issues);

// Whether a job's name may contain `c`: the name is also a directory's name.
bool is_name_character(char c);

v1::Training::Precision to_proto(engine::Precision precision);
engine::Precision from_proto(v1::Training::Precision precision);

}  // namespace arbalest::jobs
