#include "train/run_plan.h"

#include <algorithm>
#include <optional>
#include <set>

namespace arbalest::jobs {

namespace {

constexpr int kMostIntervals = 10;

// The epoch at which a step of a schedule stands; none if the size of an epoch is not known.
std::optional<double> epoch_of(const LearnerStep& step, const JobOptions& job) {
  if (step.at_epoch || step.at_batch == 0) return step.at_epoch.value_or(0.0);
  if (!job.data.training_examples) return std::nullopt;
  const std::int64_t batches = *job.data.training_examples / job.training.batch_size;
  return static_cast<double>(step.at_batch) / static_cast<double>(std::max<std::int64_t>(batches, 1));
}

PlanRow row_at(const JobOptions& job, double epoch) {
  sma::Scheme scheme = job.synchronization.scheme;
  scheduler::LearningRateSchedule schedule = job.learning_rate;
  int learners = total(job.learners_per_device);
  for (const LearnerStep& step : job.schedule) {
    const std::optional<double> at = epoch_of(step, job);
    if (at && *at <= epoch) learners = total(step.per_device);
  }
  for (const SynchronizationSwitch& to : job.switches) {
    if (to.at_epoch > epoch) break;
    scheme = to.to.scheme;
    schedule.with_learners = to.with_learners;
    if (!to.learners_per_device.empty()) learners = total(to.learners_per_device);
  }
  return {epoch, schedule.at(epoch, learners), learners, std::string(sma::name_of(scheme))};
}

}  // namespace

std::vector<PlanRow> plan_of(const JobOptions& job) {
  const int epochs = job.training.max_epochs;
  const int intervals = std::min(epochs, kMostIntervals);
  std::set<double> at;
  for (std::int64_t i = 0; i <= intervals; ++i) at.insert(static_cast<double>(i * epochs / intervals));
  for (const LearnerStep& step : job.schedule) {
    if (const auto epoch = epoch_of(step, job)) at.insert(*epoch);
  }
  for (const SynchronizationSwitch& to : job.switches) at.insert(to.at_epoch);
  for (const scheduler::Restart& restart : job.learning_rate.restarts) at.insert(restart.epoch);
  at.erase(at.upper_bound(static_cast<double>(epochs)), at.end());
  std::vector<PlanRow> rows;
  for (const double epoch : at) rows.push_back(row_at(job, epoch));
  return rows;
}

}  // namespace arbalest::jobs
