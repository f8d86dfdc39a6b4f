// Reads jobs whose model is logistic regression over sparse rows.
#pragma once

#include <string>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Whether the job has a part that only such jobs have: sparse_logistic, libsvm, delayed_proximal or hogwild.
bool is_sparse(const v1::Job& job);

// As fill_defaults (job_defaults.h), for jobs that are sparse.
void fill_sparse_defaults(v1::Job& job, const std::string& file);

// As read_job (job_reader.h), for jobs that are sparse.
JobOptions read_sparse_job(v1::Job& job, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
