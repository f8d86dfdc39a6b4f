// What a job's data leave to their defaults.
#pragma once

#include "arbalest/v1/data.pb.h"

namespace arbalest::jobs {

// Writes it out; nothing where no dataset is chosen.
void fill_defaults(v1::Data& data);

}  // namespace arbalest::jobs
