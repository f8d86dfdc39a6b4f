// Reads the optimizer of a job into its update rule.
#pragma once

#include <string>

#include "arbalest/v1/optimizer.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Reads `optimizer`, which must have its defaults. Adds issues with paths in the job; if there are any, the result must
// not be used.
OptimizerOptions read_optimizer(const v1::Optimizer& optimizer, dataflow::FieldIssues& issues);

// A warning about settings that work and may surprise; "" if there is none.
std::string optimizer_warning(const OptimizerOptions& optimizer);

}  // namespace arbalest::jobs
