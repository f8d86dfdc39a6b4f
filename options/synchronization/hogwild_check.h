// Checks a job of layers whose learners share one vector of weights (hogwild).
#pragma once

#include <optional>

#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Adds an issue for each field that does not go with hogwild; none if the job has another scheme. Devices, learners,
// switches and what `synchronization` reports must be read.
void check_hogwild(const JobOptions& options, dataflow::FieldIssues& issues);

// The warning of a job with hogwild about its dense gradients; none if the job has another scheme, or one learner.
std::optional<dataflow::FieldIssue> hogwild_warning(const JobOptions& options);

}  // namespace arbalest::jobs
