// Default values of a job's data.
#pragma once

#include <string>

#include "arbalest/v1/data.pb.h"

namespace arbalest::jobs {

// Makes a directory of `data` that begins with "./" or "../" absolute; it is relative to the directory of the job file
// `file`.
void make_directory_absolute(v1::Data& data, const std::string& file);

// Sets the fields that are missing, and makes the directory absolute; changes nothing if no dataset is chosen.
void fill_defaults(v1::Data& data, const std::string& file);

}  // namespace arbalest::jobs
