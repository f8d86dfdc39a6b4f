// The defaults of the zoo's options (proto/arbalest/v1/zoo.proto states them for users).
#pragma once

#include "arbalest/v1/zoo.pb.h"

namespace arbalest::dataflow {

// Writes into `zoo` the default of every field that is left out.
void fill_zoo_defaults(v1::Zoo& zoo);

}  // namespace arbalest::dataflow
