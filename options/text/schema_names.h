// Messages about names that do not exist in the job schema.
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/descriptor.h>

namespace arbalest::jobs {

// "no field 'bach_size' in training; did you mean 'batch_size'?". If no name is close, the message tells where in a job
// the only field of this name is, or else which fields there are.
std::string no_such_field(const google::protobuf::Descriptor& type, std::string_view name);

// Explains that the field is a message, in place of which `word` stands: "synchronization is a message; did you mean
// synchronization { s_sgd {} }?".
std::string no_message(const google::protobuf::FieldDescriptor& field, std::string_view word);

// "'SQR' is not a value of with_learners; did you mean 'SQRT'? (values: KEEP, SQRT, LINEAR)"
std::string no_such_value(const google::protobuf::FieldDescriptor& field, std::string_view value);

// The first enum field of that name in any message of the job; null if there is none.
const google::protobuf::FieldDescriptor* find_enum_field(std::string_view name);

}  // namespace arbalest::jobs
