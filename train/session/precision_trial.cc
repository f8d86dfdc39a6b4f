#include "train/session/precision_trial.h"

#include <memory>
#include <span>

#include <fmt/format.h>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "learners/step_trial.h"
#include "options/split/split_check.h"
#include "train/session/session.h"

namespace arbalest::jobs {

namespace {

constexpr double kSlow = 1.1;  // a ratio above the noise of a shared machine

StepSeconds time_precisions(const JobOptions& job, std::span<const std::unique_ptr<engine::Device>> device) {
  JobOptions tried = job;
  const auto pool_in = [&](engine::Precision precision) {
    tried.training.precision = precision;
    return std::move(make_pools(tried, device, {}).front());
  };
  const auto team_of = [](const learners::LearnerPool& pool) { return pool.team_for(pool.count()); };
  auto float32 = pool_in(engine::Precision::kFloat32), precision = pool_in(job.training.precision);
  if (team_of(*float32) != team_of(*precision)) {  // only steps of equal teams compare
    tried.chooses_team = false;
    tried.team = 1;
    float32 = pool_in(engine::Precision::kFloat32);
    precision = pool_in(job.training.precision);
  }
  const double seconds = learners::time_step(*float32);
  return {.float32 = seconds, .precision = learners::time_step(*precision)};
}

}  // namespace

std::optional<std::string> slow_precision_warning(engine::Precision precision, const std::string& device,
                                                  const StepSeconds& seconds) {
  if (seconds.precision < kSlow * seconds.float32) return std::nullopt;
  return fmt::format(
      "precision {} is slower than FP32 here: on {} a step of one mini-batch takes {:.3g} ms, and {:.3g} ms "
      "in FP32; leave training.precision out, or set kernels: FIXED to train without this trial",
      to_string(precision), device, 1e3 * seconds.precision, 1e3 * seconds.float32);
}

PrecisionTrial try_precision(const JobOptions& job, const engine::DeviceOptions& options) {
  const engine::Precision precision = job.training.precision;
  if (precision == engine::Precision::kFloat32 || is_split(job)) return {};
  if (job.training.kernels == engine::KernelSelection::kFixed) return {};
  engine::DeviceOptions opened = options;
  opened.observer = nullptr;  // a trace shows the run
  opened.kernels = job.training.kernels;
  std::vector<std::unique_ptr<engine::Device>> device;
  device.push_back(engine::open_device(job.devices.front(), opened));
  PrecisionTrial trial;
  try {
    const auto measure = [&] {
      return slow_precision_warning(precision, device.front()->name(), time_precisions(job, device));
    };
    trial.warning = measure();
    if (trial.warning.has_value()) trial.warning = measure();
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kOutOfMemory) throw;
    trial.warning.reset();  // opening the session tells how many learners fit
  }
  trial.kernels = device.front()->kernel_choices();
  return trial;
}

}  // namespace arbalest::jobs
