// The optimizer of a job -> its rule.
#pragma once

#include <string>

#include "arbalest/v1/optimizer.pb.h"
#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Writes the defaults of the fields that the job leaves out.
void fill_optimizer(v1::Optimizer& optimizer);

// Reads `optimizer`, which has its defaults. Adds what is wrong to `issues`, with paths in the job; the result is then
// not to be used.
OptimizerOptions read_optimizer(const v1::Optimizer& optimizer, dataflow::FieldIssues& issues);

// What works and may surprise; "" if there is nothing to say.
std::string optimizer_warning(const OptimizerOptions& optimizer);

}  // namespace arbalest::jobs
