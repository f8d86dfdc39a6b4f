// Converts a parsed job to JobOptions and collects all semantic errors.
#pragma once

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"
#include "jobs/options/readers/run_shape.h"

namespace arbalest::jobs {

// Converts `job` to options. Call fill_defaults (job_defaults.h) first. Writes those defaults into `job` that depend on
// other fields or on the devices: the number of learners (if equal on all devices), and the length of growth. Adds one
// issue per mistake, with its path in the job; if there are any, the result must not be used. The caller sets
// resolved_text. Devices are checked against this machine, so a job can be valid on one machine only. `shape`: of the
// run (ParsedJob::read).
JobOptions read_job(v1::Job& job, const RunShape& shape, dataflow::FieldIssues& issues);

// Checks and returns the job's name.
std::string read_name(const v1::Job& job, dataflow::FieldIssues& issues);

// Whether `c` is allowed in a job's name: an ASCII letter, a digit, '-', '_' or '.'. The name also names the run
// directory.
bool is_name_character(char c);

v1::Training::Precision to_proto(engine::Precision precision);
engine::Precision from_proto(v1::Training::Precision precision);

}  // namespace arbalest::jobs
