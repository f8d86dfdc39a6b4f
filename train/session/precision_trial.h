// Times a job's steps in two precisions before a run: to choose one, or to tell the user of a slow one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/precision.h"
#include "engine/device.h"
#include "engine/device_options.h"
#include "engine/kernel_choices.h"
#include "options/job_options.h"

namespace arbalest::jobs {

struct StepSeconds {
  double float32 = 0.0;
  double precision = 0.0;
};

// Times steps of the job in FP32 and in `precision` (learners/step_trial.h), in teams of the same size. `device`: the
// job's first. Throws what preparing the model throws, and kOutOfMemory.
StepSeconds time_precisions(const JobOptions& job, engine::Precision precision,
                            std::span<const std::unique_ptr<engine::Device>> device);

// A warning if a step in the precision takes at least 1.1 times as long as in FP32. `device`: its name.
std::optional<std::string> slow_precision_warning(engine::Precision precision, const std::string& device,
                                                  const StepSeconds& seconds);

struct PrecisionChoice {
  engine::Precision precision = engine::Precision::kFloat32;
  std::string text;  // for the user: what AUTO took, and why
};

// Why AUTO takes FP32 without a trial: layers are split over devices, or a device has no BF16; "" if a trial decides.
// `instruction_sets`: those in force.
std::string obstacle_to_bfloat16(const JobOptions& job, std::span<const std::string> instruction_sets);

// What AUTO takes for lack of a trial.
PrecisionChoice float32_because(const std::string& obstacle);

// What AUTO takes after a trial: BF16 if a step in FP32 takes at least 1.1 times as long. `device`: its name.
PrecisionChoice faster_precision(const std::string& device, const StepSeconds& seconds);

struct PrecisionTrial {
  std::optional<PrecisionChoice> choice;      // of a job with precision AUTO
  std::optional<std::string> warning;         // about the precision that another job names
  std::vector<engine::KernelChoice> kernels;  // that the trial has chosen or taken; the run need not time them again
};

// Opens the job's first device, and times steps there in FP32 and in the precision that the job names, which for AUTO
// is BF16. A ratio that would be a warning, or choose BF16, must show twice. Tries nothing for a job in FP32, for
// kernels FIXED, which measure nothing, and for a split model. If memory for the trial is short, there is no warning,
// and AUTO is FP32. A job with AUTO must have no obstacle_to_bfloat16(). Throws what preparing the model throws.
PrecisionTrial try_precision(const JobOptions& job, const engine::DeviceOptions& options);

}  // namespace arbalest::jobs
