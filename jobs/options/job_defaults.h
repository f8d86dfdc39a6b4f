// The defaults of the job schema (proto/arbalest/v1 states them for users).
#pragma once

#include <string>

#include "arbalest/v1/job.pb.h"

namespace arbalest::jobs {

// Writes into `job` the default of every field that is left out and has one, but for the number of learners, which
// follows from the devices. `file`: the name of the job file, for the job's name. Filling twice changes nothing.
void fill_defaults(v1::Job& job, const std::string& file);

}  // namespace arbalest::jobs
