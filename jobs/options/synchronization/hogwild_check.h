// Checks a job of layers whose learners share one vector of weights (hogwild).
#pragma once

#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Adds an issue for each field that does not go with hogwild; none if the job has another scheme. Devices, learners,
// switches and what `synchronization` reports must be read.
void check_hogwild(const JobOptions& options, dataflow::FieldIssues& issues);

// The warning of a job with hogwild about its dense gradients; "" if the job has none, or one learner.
std::string hogwild_warning(const JobOptions& options);

}  // namespace arbalest::jobs
