// Advice to users whose sparse job runs out of memory.
#pragma once

#include <functional>

#include "options/job_options.h"

namespace arbalest::jobs {

// Runs `step`. If no memory is left, the error names what a user of the job's model can change. Throws
// ErrorKind::kOutOfMemory then, and what `step` throws otherwise.
void with_memory_advice(const JobOptions& job, const std::function<void()>& step);

}  // namespace arbalest::jobs
