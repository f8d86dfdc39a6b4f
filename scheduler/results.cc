// Takes the results of enqueued work, and checks them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/error.h"
#include "scheduler/device_copies.h"
#include "scheduler/diverged.h"
#include "scheduler/replica_distance.h"
#include "scheduler/scheduler.h"
#include "sma/divergence_remedy.h"

namespace arbalest::scheduler {

using learners::Ticket;

namespace {

// Returns the likely remedy for values that are not finite. `of_scheme`: sma::divergence_remedy. Neither learning rate
// nor scheme affects the loss of a learner's first mini-batch.
std::string remedy(bool is_first, bool loss_is_finite, const std::string& of_scheme) {
  if (!is_first) return of_scheme + ", or check the data's normalization";
  if (!loss_is_finite) return "check the initial values of the model's layers, and the data's normalization";
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

void Scheduler::pop_stride(Progress& progress) {
  const Stride stride = strides_.pop();
  for (std::size_t i = 0; i < stride.tasks; ++i) take_result(tasks_.pop(), progress);
  if (stride.averages) pop_averaging(progress);
  if (stride.compares) check_copies(stride);
  if (stride.measures) {
    const sma::SpreadSample sample = synchronizer_.take_spread();
    progress.gradient_square_mean += sample.square_mean;
    progress.mean_gradient_square += sample.mean_square;
    ++progress.gradient_samples;
  }
}

void Scheduler::pop_averaging(Progress& progress) {
  const sma::AveragingTicket averaging = averagings_.pop();
  wait(averaging.done);
  const sma::AveragingResult& result = *averaging.result;
  if (result.non_finite > 0.0F) {
    report(Diverged(fmt::format("training diverged: {} weights of the replicas are not finite; {}", result.non_finite,
                                divergence_remedy())));
  }
  progress.replica_distance = distance_of(result, learners());
  progress.replica_spread = spread_of(result, learners());
}

void Scheduler::take_result(const Task& task, Progress& progress) {
  wait(task.ticket.done);
  task.ring->release(task.ticket.task);
  check_finite(task);
  if (task.ticket.staleness != nullptr) ++progress.staleness[*task.ticket.staleness];
  ++progress.tasks;
  progress.examples += task.ticket.examples;
  progress.sums.add(*task.ticket.result);
  if (loss_watch_) watch_loss(task);
}

std::string Scheduler::divergence_remedy() const {
  return sma::divergence_remedy(synchronizer_.options(), learners(), engine::momentum_of(pools_.front()->rule()));
}

void Scheduler::report(const Diverged& divergence) {
  if (world_.size() == 1) throw divergence;
  const std::lock_guard lock(divergence_mutex_);
  if (!divergence_) divergence_ = divergence;
}

bool Scheduler::has_divergence() const {
  const std::lock_guard lock(divergence_mutex_);
  return divergence_.has_value();
}

std::optional<Diverged> Scheduler::take_divergence() {
  const std::lock_guard lock(divergence_mutex_);
  return std::exchange(divergence_, {});
}

void Scheduler::check_finite(const Task& task) {
  const Ticket& ticket = task.ticket;
  const engine::StepResult& result = *ticket.result;
  const float loss = result.sums[engine::kLossSum];
  if (std::isfinite(loss) && result.non_finite == 0) return;
  const auto& device = pools_[pool_of_[task.learner]]->device();
  const std::string what = std::isfinite(loss)
                               ? fmt::format("{} elements of its step are not finite", result.non_finite)
                               : fmt::format("its loss is {}", std::abs(loss));  // so that it is not -nan
  const bool is_first = ticket.task < static_cast<std::uint64_t>(learners());
  report(Diverged(fmt::format("training diverged: learner {} on {}, mini-batch {} (epoch {:.2f}): {}; {}",
                              share_.first + static_cast<int>(task.learner), device.name(), ticket.task,
                              epochs_of(ticket.task), what, remedy(is_first, std::isfinite(loss), divergence_remedy())),
                  static_cast<double>(loss) / std::max(1, ticket.examples)));
}

void Scheduler::watch_loss(const Task& task) {
  const auto loss_sum = static_cast<double>(task.ticket.result->sums[engine::kLossSum]);
  const std::optional<LossSpike> spike = loss_watch_->add(task.ticket.task, task.ticket.examples, loss_sum);
  if (!spike) return;
  report(Diverged(
      fmt::format("training diverged: up to mini-batch {} (epoch {:.2f}) the training loss rose to {:.4g}, "
                  "where {:.4g} was usual (training.spike_factor); {}",
                  task.ticket.task, epochs_of(task.ticket.task), spike->loss, spike->usual, divergence_remedy()),
      spike->loss));
}

void Scheduler::check_copies(const Stride& stride) {
  std::vector<std::string> names;
  for (const auto& pool : pools_) names.push_back(pool->device().name());
  const DeviceCopies copies = copies_of_all(world_, names, synchronizer_.take_comparison(), has_divergence());
  // A device of a split model refuses a step that is not finite there, and other devices take it. The divergence ends
  // the run.
  if (copies.has_diverged) return;
  const std::vector<std::size_t> faulty = sma::faulty_devices(copies.hashes);
  if (faulty.empty()) {
    equal_at_ = stride.batches;
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
      stride.round, stride.batches,
      is_one ? "the wrong one is" : "nothing tells which of these is wrong:", fmt::join(devices, ", "),
      is_one ? "it" : "them", away, equal_at_);
}

}  // namespace arbalest::scheduler
