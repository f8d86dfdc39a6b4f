// Checks that apply to every field, whatever it means.
#pragma once

#include <google/protobuf/message.h>

#include "dataflow/models/fields/field_issues.h"

namespace arbalest::jobs {

// Adds an issue for every number that is not finite, every number that is not a value of its enum, and every text that
// is not UTF-8 or holds control characters. Protobuf's parser accepts them.
void check_values(const google::protobuf::Message& message, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
