// Default values of the model schema; proto/arbalest/v1/model.proto documents them for users.
#pragma once

#include "arbalest/v1/model.pb.h"

namespace arbalest::dataflow {

// Sets every field of `model` that is missing and has a default. A second call changes nothing.
void fill_defaults(v1::Model& model);

}  // namespace arbalest::dataflow
