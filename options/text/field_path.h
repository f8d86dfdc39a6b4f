// Paths of fields in a job: "training.batch_size", "model.layers[2].conv.filters", "devices[0]".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace arbalest::jobs {

struct FieldPathPart {
  std::string name;
  int index = -1;  // index of an element in a repeated field; -1: the whole field
};

// "layers[2]"
std::string to_string(const FieldPathPart& part);

// Returns nothing if `path` does not have that form.
std::vector<FieldPathPart> parse_field_path(std::string_view path);

// The path of the message or list around `path`: "a.b[2]" -> "a.b" -> "a" -> "".
std::string parent_path(std::string_view path);

}  // namespace arbalest::jobs
