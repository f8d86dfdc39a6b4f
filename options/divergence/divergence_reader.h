// Reads what a job does when training diverges: training.on_divergence and its fields.
#pragma once

#include <cstdint>
#include <string>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Sets the fields that are missing to their defaults.
void fill_divergence(v1::Training& training);

// Reads a job with its defaults. Adds issues with paths in the job; if there are any, the result must not be used.
DivergenceOptions read_divergence(const v1::Job& job, dataflow::FieldIssues& issues);

// A warning if the job ends before a spike of the loss could be told, for epochs of `batches` mini-batches; "" if not.
std::string spike_warning(const TrainingOptions& training, std::int64_t batches);

}  // namespace arbalest::jobs
