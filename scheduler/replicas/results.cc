#include "scheduler/replicas/results.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "scheduler/replicas/device_copies.h"
#include "scheduler/replicas/replica_distance.h"
#include "sma/divergence_remedy.h"

namespace arbalest::scheduler {

using learners::Ticket;

namespace {

// Returns the likely remedy for values that are not finite. `of_scheme`: sma::divergence_remedy. `is_initial`: whether
// no step has changed the weights that gave them.
std::string remedy(bool is_first, bool is_initial, const std::string& of_scheme) {
  if (!is_first) return of_scheme + ", or check the data's normalization";
  if (is_initial) return "check the initial values of the model's layers, and the data's normalization";
  return "check the initial values of the model's layers and the data's normalization, or " + of_scheme;
}

// "on 'cpu:1' (hash 0123456789abcdef)"; a device whose own copies differ has several hashes.
std::string hashes_text(const std::string& device, const std::vector<std::uint64_t>& hashes) {
  return fmt::format("on '{}' ({} {:016x})", device, hashes.size() == 1 ? "hash" : "hashes", fmt::join(hashes, ", "));
}

}  // namespace

void ProgressNumbers::add(const ProgressNumbers& later) {
  tasks += later.tasks;
  examples += later.examples;
  sums.add(later.sums);
  if (later.replica_distance > 0.0) {
    replica_distance = later.replica_distance;
    replica_spread = later.replica_spread;
  }
  host_seconds += later.host_seconds;
  gradient_square_mean += later.gradient_square_mean;
  mean_gradient_square += later.mean_gradient_square;
  gradient_samples += later.gradient_samples;
}

void Progress::add(const Progress& later) {
  ProgressNumbers::add(later);
  sma::add(staleness, later.staleness);
}

Results::Results(const std::optional<SpikeRule>& spike, const TrainingClock& clock, Replicas& replicas)
    : clock_(clock), replicas_(replicas) {
  if (spike) loss_watch_.emplace(*spike);
}

void Results::continue_from(const LossHistory& losses) {
  equal_at_ = 0;
  if (loss_watch_) loss_watch_->continue_from(losses);
}

void Results::take_averaging(const sma::AveragingTicket& averaging, Progress& progress) {
  replicas_.wait(averaging.done);
  const sma::AveragingResult& result = *averaging.result;
  if (result.non_finite > 0.0F) {
    report(Diverged(fmt::format("training diverged: {} weights of the replicas are not finite; {}", result.non_finite,
                                divergence_remedy())));
  }
  const int learners = replicas_.share().all;
  progress.replica_distance = distance_of(result, learners);
  progress.replica_spread = spread_of(result, learners);
}

void Results::take(const Task& task, Progress& progress) {
  replicas_.wait(task.ticket.done);
  task.ring->release(task.ticket.task);
  check_finite(task);
  if (task.ticket.staleness != nullptr) ++progress.staleness[*task.ticket.staleness];
  ++progress.tasks;
  progress.examples += task.ticket.examples;
  progress.sums.add(*task.ticket.result);
  if (loss_watch_) watch_loss(task);
}

std::string Results::divergence_remedy() const {
  return sma::divergence_remedy(scheme_, replicas_.share().all, engine::momentum_of(replicas_.pool(0).rule()));
}

void Results::report(const Diverged& divergence) {
  if (replicas_.world().size() == 1) throw divergence;
  const std::lock_guard lock(divergence_mutex_);
  if (!divergence_) divergence_ = divergence;
}

bool Results::has_divergence() const {
  const std::lock_guard lock(divergence_mutex_);
  return divergence_.has_value();
}

std::optional<Diverged> Results::take_divergence() {
  const std::lock_guard lock(divergence_mutex_);
  return std::exchange(divergence_, {});
}

void Results::report_refused(const std::string& learner, std::uint64_t mini_batch, std::int32_t refused) {
  report(Diverged(
      fmt::format("training diverged: {}, mini-batch {} (epoch {:.2f}): {} elements of the step that it pushed "
                  "are not finite; {}, or check the data's normalization",
                  learner, mini_batch, clock_.epochs_of(mini_batch), refused, divergence_remedy())));
}

void Results::check_finite(const Task& task) {
  const Ticket& ticket = task.ticket;
  const engine::StepResult& result = *ticket.result;
  const float loss = result.sums[engine::kLossSum];
  if (std::isfinite(loss) && result.non_finite == 0) return;
  const auto& device = replicas_.pool(replicas_.pool_of(task.learner)).device();
  const std::string what = std::isfinite(loss)
                               ? fmt::format("{} elements of its step are not finite", result.non_finite)
                               : fmt::format("its loss is {}", std::abs(loss));  // so that it is not -nan
  const bool is_first = ticket.task < static_cast<std::uint64_t>(replicas_.share().all);
  // A learner's first loss is that of the initial weights, unless another has written them meanwhile.
  const bool is_initial = !std::isfinite(loss) && scheme_.scheme != sma::Scheme::kHogwild;
  report(Diverged(fmt::format("training diverged: learner {} on {}, mini-batch {} (epoch {:.2f}): {}; {}",
                              replicas_.share().first + static_cast<int>(task.learner), device.name(), ticket.task,
                              clock_.epochs_of(ticket.task), what, remedy(is_first, is_initial, divergence_remedy())),
                  static_cast<double>(loss) / std::max(1, ticket.examples)));
}

void Results::watch_loss(const Task& task) {
  const auto loss_sum = static_cast<double>(task.ticket.result->sums[engine::kLossSum]);
  const std::optional<LossSpike> spike = loss_watch_->add(task.ticket.task, task.ticket.examples, loss_sum);
  if (!spike) return;
  report(Diverged(
      fmt::format("training diverged: up to mini-batch {} (epoch {:.2f}) the training loss rose to {:.4g}, "
                  "where {:.4g} was usual (training.spike_factor); {}",
                  task.ticket.task, clock_.epochs_of(task.ticket.task), spike->loss, spike->usual, divergence_remedy()),
      spike->loss));
}

void Results::check_copies(const sma::CopyHashes& hashes, std::uint64_t round, std::uint64_t batches) {
  std::vector<std::string> names;
  for (const auto& pool : replicas_.pools()) names.push_back(pool->device().name());
  const DeviceCopies copies = copies_of_all(replicas_.world(), names, hashes, has_divergence());
  // A device of a split model refuses a step that is not finite there, and other devices take it. The divergence ends
  // the run.
  if (copies.has_diverged) return;
  const std::vector<std::size_t> faulty = sma::faulty_devices(copies.hashes);
  if (faulty.empty()) {
    equal_at_ = batches;
    return;
  }
  std::vector<std::string> devices;
  for (const std::size_t d : faulty) devices.push_back(hashes_text(copies.devices[d], copies.hashes[d]));
  const bool is_one = faulty.size() == 1;
  const std::string away = copies.devices.size() == 1
                               ? ""
                               : fmt::format("take {} out of the job's devices, ", is_one ? "it" : "the faulty one");
  engine::fail(
      engine::ErrorKind::kDevice,
      "after round {} (mini-batch {}) the devices' copies of the model differ: {} {}; memory there, or what "
      "carries data to it, changes bits: test {} (a GPU by `nvidia-smi -q -d ECC`, a machine by a memory test), "
      "{}and go on with --resume from a checkpoint at or before mini-batch {}, "
      "where the copies were last equal",
      round, batches, is_one ? "the wrong one is" : "nothing tells which of these is wrong:", fmt::join(devices, ", "),
      is_one ? "it" : "them", away, equal_at_);
}

}  // namespace arbalest::scheduler
