// Finds the fields of a job that its kind of model does not know.
#pragma once

#include <set>
#include <string>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"

namespace arbalest::jobs {

// Adds an issue for every field of `job` that is set, and is none of `known`, a part of one, or a message around one.
//   known: paths such as "training.seed"    kind: "model { sparse_logistic {} }"
void refuse_foreign_fields(const v1::Job& job, const std::set<std::string>& known, const std::string& kind,
                           dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
