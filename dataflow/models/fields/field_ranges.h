// The ranges and required fields that the schema states: (arbalest.v1.field).
#pragma once

#include <string>

#include <google/protobuf/message.h>

#include "dataflow/models/fields/field_issues.h"

namespace arbalest::dataflow {

// Adds an issue for each field of `message`, and of the messages within it, that is required and missing, or whose
// number, or a number of whose list, is out of its range. `path`: path of `message`; "" for the top. A required field
// of a part of the job, whose path has no dot and which may be missing as a whole, is named by its path, others by
// their names.
void check_fields(const google::protobuf::Message& message, const std::string& path, FieldIssues& issues);

// Returns "slope must be in [0, 1], not 2", or "" if the number is missing or in its range. Not for lists.
std::string field_problem(const google::protobuf::Message& message, const std::string& field);

// Returns the range of a field: "in [0, 1]", "at least 1", "above 0"; "" if it has none.
std::string range_text(const google::protobuf::FieldDescriptor& field);

}  // namespace arbalest::dataflow
