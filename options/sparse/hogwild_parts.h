// Reads the learning rate of hogwild, and the devices and learners of jobs that train on CPUs only.
#pragma once

#include <set>
#include <string>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Sets the learning rate's defaults under hogwild. The job must have its max_epochs.
void fill_hogwild(v1::Job& job);

// Reads the learning rate of hogwild.
HogwildOptions read_hogwild(const v1::Job& job, dataflow::FieldIssues& issues);

// The fields of the learning rate that hogwild knows, as paths in the job.
std::set<std::string> hogwild_rate_fields();

// Adds an issue for every GPU. `kind`: "sparse_logistic", "hogwild".
void refuse_gpus(const JobOptions& options, const std::string& kind, dataflow::FieldIssues& issues);

// Reads the learners if their number is fixed or missing. Other numbers are left to refuse_foreign_fields().
void read_fixed_learners(v1::Job& job, JobOptions& options, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
