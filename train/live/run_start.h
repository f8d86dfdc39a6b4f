// Describes a run for its observers when it starts.
#pragma once

#include "engine/process/world.h"
#include "options/job_options.h"
#include "train/context/run_observer.h"
#include "train/session/session.h"

namespace arbalest::jobs {

// Fills in what follows from the job and its session: all but the clock, the paths and the point of resumption.
RunStart describe_run(const JobOptions& job, const Session& session, EvaluationSet accuracy_set);

// The names of the job's devices; of several processes, those of each with its rank: "rank 1: cpu:1".
std::vector<std::string> device_names(const std::vector<engine::DeviceSpec>& devices, engine::process::World& world);

}  // namespace arbalest::jobs
