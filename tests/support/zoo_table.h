// The table of the zoo in docs/models.md, whose numbers tests compare with the models.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "dataflow/graph.h"

namespace arbalest::tests {

struct ZooRow {
  std::string name;                         // as in a job file: "lenet"
  std::int64_t least_side = 1;              // of an image, in pixels; 0 if the model takes no images
  dataflow::InputDescription published_on;  // the data of the published number of parameters; unknown without one
  std::set<std::int64_t> parameters;        // one number for each variant
};

// The rows for images come first. Throws if a row cannot be read, or if its name is not one of the schema's models.
std::vector<ZooRow> zoo_table();

}  // namespace arbalest::tests
