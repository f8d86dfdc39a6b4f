// Refuses commands that need a model of layers.
#pragma once

#include <string_view>

#include "options/job_options.h"

namespace arbalest::jobs {

// Throws ErrorKind::kInvalidJob if the job's model has no layers. `command`: "arbalest export".
void require_graph(const JobOptions& job, std::string_view command);

// Throws ErrorKind::kInvalidJob if the job is not trained on mini-batches by learners with replicas.
void require_replicas(const JobOptions& job, std::string_view command);

}  // namespace arbalest::jobs
