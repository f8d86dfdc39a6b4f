// Warnings about settings of `synchronization` that work and may surprise.
#pragma once

#include <vector>

#include "arbalest/v1/synchronization.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Returns the warnings of a job with replicas, each with the path of its field. They count the learners of all
// processes, as far as those are known (JobOptions::learners_elsewhere). `written`: the synchronization of the job
// without defaults.
std::vector<dataflow::FieldIssue> synchronization_warnings(const v1::Synchronization& written,
                                                           const JobOptions& options);

}  // namespace arbalest::jobs
