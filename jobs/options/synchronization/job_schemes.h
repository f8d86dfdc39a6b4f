// What the schemes of a job need: the first one, and those of its switches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jobs/options/job_options.h"

namespace arbalest::jobs {

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
