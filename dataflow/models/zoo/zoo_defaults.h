// Default options of the built-in models (the zoo). The comments of proto/arbalest/v1/zoo.proto state the same values.
#pragma once

#include "arbalest/v1/zoo.pb.h"

namespace arbalest::dataflow {

// Fills in the missing fields of the model that `zoo` selects. Does nothing if no model is selected.
void fill_zoo_defaults(v1::Zoo& zoo);

}  // namespace arbalest::dataflow
