// Reads `synchronization` of a job file: the scheme that keeps learners together, and switches to others.
#pragma once

#include <string>
#include <vector>

#include "arbalest/v1/synchronization.pb.h"
#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Sets the fields that are missing to their defaults.
void fill_synchronization(v1::Synchronization& synchronization, int max_epochs);

// Whether the job begins with a scheme under which k learners take as many steps as one: each push is a step.
bool steps_by_push(const v1::Synchronization& synchronization);

// Reads `synchronization`, which must have its defaults, into the corresponding fields of `options`, whose training,
// learning rate and learners must be set. Adds issues with paths in the job.
void read_synchronization(const v1::Synchronization& synchronization, JobOptions& options,
                          dataflow::FieldIssues& issues);

// Returns warnings about settings that work and may surprise.
std::vector<std::string> synchronization_warnings(const JobOptions& options);

// All schemes of the job, the first one first.
std::vector<sma::Options> schemes_of(const JobOptions& options);

// The largest number of steps that learners take at once (scheduler::Scheduler). Rings and results are sized by it.
int longest_stride(const JobOptions& options);

// Whether learners push sums of gradients (learners::LearnerOptions::sums_gradients).
bool sums_gradients(const JobOptions& options);

// The path of the job's first scheme that needs a server, which is in one process; "" if there is none.
std::string path_of_server(const JobOptions& options);

// Bytes of the gradient's parts that are reduced at once; 0 if gradients are not reduced.
std::int64_t gradient_part_bytes(const JobOptions& options);

// Whether the gradients' spread is measured; goodput is estimated from it.
bool measures_gradients(const JobOptions& options);

}  // namespace arbalest::jobs
