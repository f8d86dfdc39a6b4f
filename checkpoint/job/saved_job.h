// Reads the job of a checkpoint.
#pragma once

#include <string>

#include "arbalest/v1/job.pb.h"

namespace arbalest::jobs {

// `text`: a JobOptions::resolved_text. Throws kCheckpoint if it is malformed.
v1::Job parse_saved_job(const std::string& text);

}  // namespace arbalest::jobs
