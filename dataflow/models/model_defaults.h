// The defaults of the model schema (proto/arbalest/v1/model.proto states them for users).
#pragma once

#include "arbalest/v1/model.pb.h"

namespace arbalest::dataflow {

// Writes into `model` the default of every field that is left out and has one. Filling twice changes nothing.
void fill_defaults(v1::Model& model);

}  // namespace arbalest::dataflow
