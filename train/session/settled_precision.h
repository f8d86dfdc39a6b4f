// Gives a job the precision that it trains in, before its session opens.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/device_options.h"
#include "engine/kernel_choices.h"
#include "engine/process/world.h"
#include "options/job_options.h"

namespace arbalest::jobs {

struct SettledPrecision {
  std::string text;                           // for the user: what AUTO took, and why; "": the job names a precision
  std::vector<engine::KernelChoice> kernels;  // PrecisionTrial::kernels; of rank 0
};

// Rank 0 tries the precision (precision_trial.h) for all processes of the run. A job with precision AUTO gets BF16 if
// the devices of all processes have it and rank 0 finds it faster, and FP32 otherwise, and is from then on a job that
// names this precision. Rank 0's job gets a warning if the precision that it names is slower than FP32. A call of
// World's operations.
SettledPrecision settle_precision(JobOptions& job, const engine::DeviceOptions& options, engine::process::World& world);

// The same for a program of one process that is no run: only AUTO is tried. `note` gets the line for the user.
JobOptions with_settled_precision(JobOptions job, const engine::DeviceOptions& options,
                                  const std::function<void(const std::string&)>& note);

}  // namespace arbalest::jobs
