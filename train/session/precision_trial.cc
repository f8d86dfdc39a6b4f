#include "train/session/precision_trial.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "learners/step_trial.h"
#include "options/readers/learners_reader.h"
#include "options/split/split_check.h"

namespace arbalest::jobs {

namespace {

constexpr double kSlow = 1.1;  // a ratio above the noise of a shared machine

StepSeconds time_precisions(const JobOptions& job, engine::Device& device) {
  learners::PoolOptions options{
      .batch = job.training.batch_size,
      .evaluation_batch = job.training.batch_size,
      .without_decay = job.optimizer.without_decay,
      .learner = {.rule = job.optimizer.rule, .clip_gradient_norm = job.optimizer.clip_gradient_norm}};
  const int learners = std::max(1, job.learners_per_device.front());
  const int threads = device.is_cuda() ? 1 : std::max(1, device.cores() / learners);
  const int size = device.takes_teams() && learners % job.team == 0 ? job.team : 1;
  StepSeconds seconds;
  options.precision = job.training.precision;
  seconds.precision = learners::time_step(*job.graph, device, options, threads, size);
  options.precision = engine::Precision::kFloat32;
  seconds.float32 = learners::time_step(*job.graph, device, options, threads, size);
  return seconds;
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

std::optional<std::string> find_slow_precision(const JobOptions& job, const engine::DeviceOptions& options) {
  const engine::Precision precision = job.training.precision;
  if (precision == engine::Precision::kFloat32 || is_split(job)) return std::nullopt;
  if (job.training.kernels == engine::KernelSelection::kFixed) return std::nullopt;
  const auto device = engine::open_device(
      job.devices.front(),
      {.graphs = options.graphs, .lend_cores = options.lend_cores, .kernels = job.training.kernels});
  try {
    const auto warning = slow_precision_warning(precision, device->name(), time_precisions(job, *device));
    if (!warning.has_value()) return std::nullopt;
    return slow_precision_warning(precision, device->name(), time_precisions(job, *device));
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kOutOfMemory) throw;
    return std::nullopt;  // opening the session tells how many learners fit
  }
}

}  // namespace arbalest::jobs
