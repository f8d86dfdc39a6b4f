// Tells the user of a precision that makes training slower.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/precision.h"
#include "engine/device_options.h"
#include "engine/kernel_choices.h"
#include "options/job_options.h"

namespace arbalest::jobs {

struct StepSeconds {
  double float32 = 0.0;
  double precision = 0.0;
};

// A warning if a step in the precision takes at least 1.1 times as long as in FP32. `device`: its name.
std::optional<std::string> slow_precision_warning(engine::Precision precision, const std::string& device,
                                                  const StepSeconds& seconds);

struct PrecisionTrial {
  std::optional<std::string> warning;
  std::vector<engine::KernelChoice> kernels;  // that the trial has chosen or taken; the run need not time them again
};

// Opens the job's first device, and times steps there in both precisions (learners/step_trial.h). A ratio that would be
// a warning must show twice. Tries nothing for a job in FP32, for kernels FIXED, which measure nothing, and for a split
// model. No warning if memory for the trial is short. Throws what preparing the model throws.
PrecisionTrial try_precision(const JobOptions& job, const engine::DeviceOptions& options);

}  // namespace arbalest::jobs
