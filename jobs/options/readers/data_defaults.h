// Default values of a job's data.
#pragma once

#include "arbalest/v1/data.pb.h"

namespace arbalest::jobs {

// Sets the fields that are missing; changes nothing if no dataset is chosen.
void fill_defaults(v1::Data& data);

}  // namespace arbalest::jobs
