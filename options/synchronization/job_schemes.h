// Functions that tell what the schemes of a job need: the first one, and those of its switches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "options/job_options.h"

namespace arbalest::jobs {

// All schemes of the job, the first one first.
std::vector<sma::Options> schemes_of(const JobOptions& options);

// Returns the scheme after so many switches.
const sma::Options& present_scheme(const JobOptions& options, std::size_t switches_done);

// Whether so many learners train in rounds under the scheme. Only then are the replicas compared.
bool has_rounds(const sma::Options& scheme, int learners);

// The largest number of steps that learners take at once (scheduler::Scheduler). Rings and results are sized by it.
int longest_iteration(const JobOptions& options);

// Whether learners push sums of gradients (learners::LearnerOptions::sums_gradients).
bool sums_gradients(const JobOptions& options);

// The path of the job's first use of the scheme; "" if there is none.
std::string path_of(sma::Scheme scheme, const JobOptions& options);

// Bytes of the gradient's parts that are reduced at once; 0 if gradients are not reduced.
std::int64_t gradient_part_bytes(const JobOptions& options);

// Whether the gradients' variance is measured; goodput is estimated from it.
bool measures_gradients(const JobOptions& options);

}  // namespace arbalest::jobs
