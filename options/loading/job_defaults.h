// Default values of the job schema; proto/arbalest/v1 documents them for users.
#pragma once

#include <string>

#include "arbalest/v1/job.pb.h"

namespace arbalest::jobs {

// Sets every field of `job` that is missing and has a default, except the number of learners, which follows from the
// devices. `file`: name of the job file, from which the job gets its name. A second call changes nothing.
void fill_defaults(v1::Job& job, const std::string& file);

}  // namespace arbalest::jobs
