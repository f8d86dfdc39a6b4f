// Default values of a job's data.
#pragma once

#include <string>

#include "arbalest/v1/data.pb.h"

namespace arbalest::jobs {

// Sets the fields that are missing; changes nothing if no dataset is chosen. Makes a directory that begins with "./" or
// "../" absolute; it is relative to the directory of the job file `file`.
void fill_defaults(v1::Data& data, const std::string& file);

}  // namespace arbalest::jobs
