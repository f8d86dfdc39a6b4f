// The processor time of a run's windows.
#pragma once

#include <memory>

#include "autotuner/throughput.h"
#include "engine/host/processor_time.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Returns a clock for the cores that the job's devices name, or for all cores that the process may use if a device
// names none. Null for a job on GPUs, whose speed does not follow from this time.
std::unique_ptr<engine::host::ProcessorClock> make_processor_clock(const JobOptions& job);

// Ends the clock's interval. Nothing if the system tells nothing about it.
autotuner::ProcessorUse take_use(engine::host::ProcessorClock& clock);

}  // namespace arbalest::jobs
