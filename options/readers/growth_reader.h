// Reads `learners { per_device { growth { ... } } }` of a job file: few learners at first, whose number doubles
// repeatedly.
#pragma once

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Reports that `from` is not below `to`.
void check_growth(const v1::Learners::Growth& growth, dataflow::FieldIssues& issues);

// Reads `growth` into the schedule of `options`, whose devices and epochs must be set. With n doublings from `from` to
// `to`, there are 2^i times `from` learners, at most `to`, from epoch `epochs` i / n on. Writes the default
// of `epochs` into `growth`. Without sound numbers it does nothing more.
void read_growth(v1::Learners::Growth& growth, JobOptions& options, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
