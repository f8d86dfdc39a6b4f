// Checks whether a run can follow its schedule of learners.
#pragma once

#include <cstdint>
#include <optional>

#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Adds issues for steps of a schedule that lie within a stride (scheduler::Scheduler). Strides continue from one epoch
// to the next, so the size of an epoch matters only if switches change the length of a stride. Without `batches` (of an
// epoch) such jobs are not checked.
void check_steps(const JobOptions& options, std::optional<std::int64_t> batches, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
