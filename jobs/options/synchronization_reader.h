// `synchronization` of a job file: the scheme that keeps learners together, and switches to others.
#pragma once

#include <string>
#include <vector>

#include "arbalest/v1/synchronization.pb.h"
#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Writes the defaults of the fields that the job leaves out.
void fill_synchronization(v1::Synchronization& synchronization);

// Reads `synchronization`, which has its defaults, into the fields of `options` that say so; its training, learning
// rate and learners are read already. Adds what is wrong to `issues`, with paths in the job.
void read_synchronization(const v1::Synchronization& synchronization, JobOptions& options,
                          dataflow::FieldIssues& issues);

// Returns warnings about settings that work and may surprise.
std::vector<std::string> synchronization_warnings(const JobOptions& options);

// All schemes of the job, the first one first.
std::vector<sma::Options> schemes_of(const JobOptions& options);

// The most steps that learners take at once (scheduler::Scheduler): what rings and results are sized by.
int longest_stride(const JobOptions& options);

// Bytes of a part of the gradient that is reduced at once, or 0 if gradients are not.
std::int64_t gradient_part_bytes(const JobOptions& options);

// Whether the gradients' spread is measured, which goodput is estimated from.
bool measures_gradients(const JobOptions& options);

}  // namespace arbalest::jobs
