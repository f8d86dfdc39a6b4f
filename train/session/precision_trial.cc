#include "train/session/precision_trial.h"

#include <fmt/format.h>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "learners/step_trial.h"
#include "options/split/split_check.h"
#include "train/session/session.h"

namespace arbalest::jobs {

namespace {

using engine::Precision;

constexpr double kSlow = 1.1;  // a ratio above the noise of a shared machine

bool is_slow(const StepSeconds& seconds) { return seconds.precision >= kSlow * seconds.float32; }
bool is_fast(const StepSeconds& seconds) { return seconds.float32 >= kSlow * seconds.precision; }

}  // namespace

StepSeconds time_precisions(const JobOptions& job, Precision other,
                            std::span<const std::unique_ptr<engine::Device>> device) {
  JobOptions tried = job;
  const auto pool_in = [&](Precision precision) {
    tried.training.precision = precision;
    return std::move(make_pools(tried, device, {}).front());
  };
  const auto team_of = [](const learners::LearnerPool& pool) { return pool.team_for(pool.count()); };
  auto float32 = pool_in(Precision::kFloat32), precision = pool_in(other);
  if (team_of(*float32) != team_of(*precision)) {  // only steps of equal teams compare
    tried.chooses_team = false;
    tried.team = 1;
    float32 = pool_in(Precision::kFloat32);
    precision = pool_in(other);
  }
  const double seconds = learners::time_step(*float32);
  return {.float32 = seconds, .precision = learners::time_step(*precision)};
}

std::optional<std::string> slow_precision_warning(Precision precision, const std::string& device,
                                                  const StepSeconds& seconds) {
  if (!is_slow(seconds)) return std::nullopt;
  return fmt::format(
      "precision {} is slower than FP32 here: on {} a step of one mini-batch takes {:.3g} ms, and {:.3g} ms "
      "in FP32; leave training.precision out, or set kernels: FIXED to train without this trial",
      to_string(precision), device, 1e3 * seconds.precision, 1e3 * seconds.float32);
}

std::string obstacle_to_bfloat16(const JobOptions& job, std::span<const std::string> instruction_sets) {
  if (is_split(job)) return "devices of a split model send float32 only";
  for (const engine::DeviceSpec& device : job.devices) {
    const bool has_bfloat16 = engine::precision_problem(device, Precision::kBFloat16, instruction_sets).empty();
    if (!has_bfloat16) return fmt::format("'{}' has no BF16", device.name);
  }
  return "";
}

PrecisionChoice float32_because(const std::string& obstacle) {
  return {Precision::kFloat32, fmt::format("AUTO took FP32: {}", obstacle)};
}

PrecisionChoice faster_precision(const std::string& device, const StepSeconds& seconds) {
  const Precision chosen = is_fast(seconds) ? Precision::kBFloat16 : Precision::kFloat32;
  return {chosen, fmt::format("AUTO took {}: on {} a step of one mini-batch takes {:.3g} ms in FP32 and {:.3g} ms in "
                              "BF16, a ratio of {:.2f} (BF16 from {:g} on)",
                              to_string(chosen), device, 1e3 * seconds.float32, 1e3 * seconds.precision,
                              seconds.float32 / seconds.precision, kSlow)};
}

PrecisionTrial try_precision(const JobOptions& job, const engine::DeviceOptions& options) {
  const bool chooses = job.training.chooses_precision;
  const Precision precision = chooses ? Precision::kBFloat16 : job.training.precision;
  if (precision == Precision::kFloat32 || is_split(job)) return {};
  if (job.training.kernels == engine::KernelSelection::kFixed) return {};
  engine::DeviceOptions opened = options;
  opened.observer = nullptr;  // a trace shows the run
  opened.kernels = job.training.kernels;
  std::vector<std::unique_ptr<engine::Device>> device;
  device.push_back(engine::open_device(job.devices.front(), opened));
  const std::string& name = device.front()->name();
  PrecisionTrial trial;
  try {
    StepSeconds seconds = time_precisions(job, precision, device);
    if (chooses ? is_fast(seconds) : is_slow(seconds)) seconds = time_precisions(job, precision, device);
    if (chooses) {
      trial.choice = faster_precision(name, seconds);
    } else {
      trial.warning = slow_precision_warning(precision, name, seconds);
    }
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kOutOfMemory) throw;
    // Opening the session tells how many learners fit.
    if (chooses) trial.choice = float32_because("memory does not suffice to time both precisions");
  }
  trial.kernels = device.front()->kernel_choices();
  return trial;
}

}  // namespace arbalest::jobs
