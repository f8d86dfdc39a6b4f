// Reads jobs that train by hogwild, but not logistic regression: matrix factorization over ratings.
#pragma once

#include <string>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

bool is_factorization(const v1::Job& job);

// Fills in the defaults of such a job, as fill_defaults (job_defaults.h) does for others.
void fill_factorization_defaults(v1::Job& job, const std::string& file);

// Reads such a job, as read_job (job_reader.h) reads others. The result has a graph and JobOptions::sparse. It has no
// other fields than those of sparse jobs, the data, and the weight decay of SGD. Other models than matrix factorization
// are an issue.
JobOptions read_factorization_job(v1::Job& job, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
