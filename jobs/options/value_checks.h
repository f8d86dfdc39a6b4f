// What no value of any field may be, whatever the field means.
#pragma once

#include <google/protobuf/message.h>

#include "dataflow/models/field_issues.h"

namespace arbalest::jobs {

// Adds to `issues` every number that is not finite, every number that stands for no value of its enum, and all text
// that is not UTF-8 or holds control characters: protobuf's parser lets them pass.
void check_values(const google::protobuf::Message& message, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
