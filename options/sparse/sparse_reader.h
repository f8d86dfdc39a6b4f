// Reads jobs without mini-batches and replicas: logistic regression over sparse rows, and hogwild on ratings.
#pragma once

#include <string>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Returns whether the job has a part of sparse jobs: sparse_logistic, libsvm or delayed_proximal, or hogwild on
// ratings.
bool is_sparse(const v1::Job& job);

// fill_defaults() of sparse jobs (options/loading/job_defaults.h describes it).
void fill_sparse_defaults(v1::Job& job, const std::string& file);

// read_job() of sparse jobs (options/loading/job_reader.h describes it).
JobOptions read_sparse_job(v1::Job& job, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
