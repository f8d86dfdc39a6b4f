// The defaults that the schema states: (arbalest.v1.field).default.
#pragma once

#include <string>

#include <google/protobuf/message.h>

namespace arbalest::dataflow {

// Sets every field of `message`, and of the messages within it, that is missing and has a default without a condition.
// A second call changes nothing.
void fill_fields(google::protobuf::Message& message);

// Sets one field to its default if it is missing, whatever the condition. A message that is there gets what it lacks of
// the default; an alternative that it has chosen stays.
void fill_field(google::protobuf::Message& message, const std::string& field);

}  // namespace arbalest::dataflow
