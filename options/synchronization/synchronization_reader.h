// Reads `synchronization` of a job file: the scheme that keeps learners together, and switches to others.
#pragma once

#include "arbalest/v1/optimizer.pb.h"
#include "arbalest/v1/synchronization.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Sets the missing fields whose defaults depend on `max_epochs` and on whether the optimizer has momentum.
void fill_synchronization(v1::Synchronization& synchronization, const v1::Optimizer& optimizer, int max_epochs);

// Returns whether the job begins with a scheme under which k learners take as many steps as one: each push of async_sgd
// and each mini-batch of hogwild is a step. With or without the defaults of `synchronization`.
bool takes_whole_steps(const v1::Synchronization& synchronization);

// Reads `synchronization`, which must have its defaults, into the corresponding fields of `options`, whose training,
// learning rate and learners must be set. Adds issues with paths in the job.
void read_synchronization(const v1::Synchronization& synchronization, JobOptions& options,
                          dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
