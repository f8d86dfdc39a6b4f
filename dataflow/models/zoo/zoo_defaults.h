// Default options of the zoo; proto/arbalest/v1/zoo.proto documents them for users.
#pragma once

#include "arbalest/v1/zoo.pb.h"

namespace arbalest::dataflow {

// Sets every field of `zoo` that is missing.
void fill_zoo_defaults(v1::Zoo& zoo);

}  // namespace arbalest::dataflow
