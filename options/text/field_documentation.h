// The documentation of job fields: the comments and options of the schema (proto/arbalest/v1), which the program
// carries.
#pragma once

#include <string>
#include <string_view>

namespace arbalest::jobs {

// Describes a field: its type, its comment, its range and default, and for a message its fields, one line each.
//
// `field`: the path of a field ("learning_rate.base", "model.layers[0].conv"), the end of one ("base",
// "validation.fraction"), or a value of one ("ROLL_BACK"). If several fields are meant, the text lists their paths.
// Returns "" if a job has no such field or value.
std::string field_documentation(std::string_view field);

// The path of the field that was meant by `field`, which is none: "learning_rate.base" for "learning_rate.bass". Names
// are compared as those in job files (suggested_name). "" if no field is near.
std::string nearest_field(std::string_view field);

}  // namespace arbalest::jobs
