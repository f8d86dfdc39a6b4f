// Reads the switches of `synchronization`: changes of the scheme while a job trains.
#pragma once

#include <string>

#include "arbalest/v1/synchronization.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Appends the switch to `options`, whose first scheme, training, learning rate, learners and earlier switches must be
// set. `path`: the switch's path in the job. Adds issues for what does not fit.
void read_switch(const v1::Switch& message, const std::string& path, JobOptions& options,
                 dataflow::FieldIssues& issues);

// Puts s_sgd before an asynchronous first scheme: async_sgd then comes with the job's first switch. `kind`: the first
// scheme's message.
void add_warm_start(const v1::AsyncSgd& kind, JobOptions& options, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
