// The job schema -> options, with everything that is wrong with a job.
#pragma once

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Reads `job`, which has its defaults (fill_defaults), and writes into it the number of learners per device where it
// was left out and all devices have the same. Adds what is wrong to `issues`, with paths in the job; the result is then
// not to be used. Does not set resolved_text.
JobOptions read_job(v1::Job& job, dataflow::FieldIssues& issues);

// Of a job's name, which names a directory.
bool is_name_character(char c);

v1::Training::Precision to_proto(engine::Precision precision);
engine::Precision from_proto(v1::Training::Precision precision);

}  // namespace arbalest::jobs
