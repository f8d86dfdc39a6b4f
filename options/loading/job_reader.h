// Converts a parsed job to JobOptions and collects all semantic errors.
#pragma once

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"
#include "options/readers/run_shape.h"

namespace arbalest::jobs {

// Converts `job` to options. Call fill_defaults (job_defaults.h) first. Writes those defaults into `job` that depend on
// other fields or on the devices: the number of learners (if equal on all devices), and the length of growth. Adds one
// issue per mistake, with its path in the job; if there are any, the result must not be used. The caller sets
// resolved_text. Devices are checked against this machine, so a job can be valid on one machine only. `shape`: of the
// run (ParsedJob::read).
JobOptions read_job(v1::Job& job, const RunShape& shape, dataflow::FieldIssues& issues);

v1::Training::Precision to_proto(engine::Precision precision);
// AUTO is FP32 (TrainingOptions::chooses_precision).
engine::Precision from_proto(v1::Training::Precision precision);

}  // namespace arbalest::jobs
