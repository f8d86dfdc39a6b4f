// Refuses commands that need a model of layers.
#pragma once

#include <string_view>

#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Throws ErrorKind::kInvalidJob if the job's model is sparse. `command`: "arbalest inspect".
void require_graph(const JobOptions& job, std::string_view command);

}  // namespace arbalest::jobs
