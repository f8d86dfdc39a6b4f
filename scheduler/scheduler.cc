#include "scheduler/scheduler.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"
#include "engine/host/thread_time.h"
#include "scheduler/spread_batches.h"

namespace arbalest::scheduler {

using engine::StepParameters;
using learners::Learner;
using learners::LearnerPool;
using learners::Ticket;

namespace {

int learner_count(std::span<const std::unique_ptr<LearnerPool>> pools) {
  int count = 0;
  for (const auto& pool : pools) count += pool->count();
  return count;
}

// The likely remedy for values that are not finite. The learning rate does not affect the loss of a learner's first
// mini-batch.
const char* remedy(bool is_first, bool loss_is_finite) {
  if (!is_first) return "lower learning_rate.base, or check the data's normalization";
  if (!loss_is_finite) return "check the initial values of the model's layers, and the data's normalization";
  return "check the initial values of the model's layers and the data's normalization, or lower learning_rate.base";
}

}  // namespace

namespace {

double distance_of(const sma::AveragingResult& result, double learners) {
  return std::sqrt(static_cast<double>(result.squared_distance) / learners);
}

// sum_j |w_j - mean|^2 = sum_j |w_j - z|^2 - k |mean - z|^2
double spread_of(const sma::AveragingResult& result, double learners) {
  const double squares = result.squared_distance;
  return std::sqrt(std::max(0.0, squares - static_cast<double>(result.squared_sum) / learners) / learners);
}

}  // namespace

void Progress::add(const Progress& later) {
  tasks += later.tasks;
  examples += later.examples;
  loss_sum += later.loss_sum;
  correct += later.correct;
  correct_top5 += later.correct_top5;
  if (later.replica_distance > 0.0) {
    replica_distance = later.replica_distance;
    replica_spread = later.replica_spread;
  }
  host_seconds += later.host_seconds;
  gradient_square_mean += later.gradient_square_mean;
  mean_gradient_square += later.mean_gradient_square;
  gradient_samples += later.gradient_samples;
}

namespace {

std::vector<engine::Device*> devices_of(std::span<const std::unique_ptr<LearnerPool>> pools) {
  std::vector<engine::Device*> devices;
  for (const auto& pool : pools) devices.push_back(&pool->device());
  return devices;
}

sma::SynchronizerNeeds needs_of(const Options& options, std::span<const std::unique_ptr<LearnerPool>> pools) {
  sma::SynchronizerNeeds needs{.schemes = {options.synchronization},
                               .most_learners = std::max(options.most_learners, learner_count(pools)),
                               .may_resize = options.may_resize,
                               .state_slots = pools.front()->state_slots()};
  needs.measures_gradients = options.measures_gradients;
  needs.schemes.insert(needs.schemes.end(), options.switches.begin(), options.switches.end());
  return needs;
}

sma::CenterSizes sizes_of(const LearnerPool& pool) {
  const dataflow::ParameterLayout& layout = pool.training_plan().parameters();
  return {layout.moving_elements(), layout.statistic_elements(), layout.frozen_elements()};
}

}  // namespace

Scheduler::Scheduler(const Options& options, std::span<const std::unique_ptr<LearnerPool>> pools,
                     engine::Collective& collective)
    : options_(options),
      pools_(pools),
      synchronizer_(needs_of(options, pools), devices_of(pools), sizes_of(*pools.front()), collective, kRunAhead + 1),
      moving_average_(options.moving_average),
      tasks_(0),
      strides_(kRunAhead + 1),
      averagings_(kRunAhead + 1),
      evaluation_ready_(pools.size()) {
  create_learners();
  LearnerPool& first = *pools_.front();
  const dataflow::ParameterLayout& layout = first.training_plan().parameters();
  layout.initialize(first.device(), options_.seed, first.evaluation_weights());
  load(layout.to_canonical(first.device(), first.evaluation_weights()));
}

Scheduler::~Scheduler() { abandon(); }

void Scheduler::create_learners() {
  for (const auto& pool : pools_) pool->create();
  if (options_.statistics_ring != nullptr) statistics_.emplace(*pools_.front());
  collect_learners();
  bind(options_.synchronization);
}

void Scheduler::collect_learners() {
  learners_.clear();
  pool_of_.clear();
  ready_.clear();
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    for (const auto& learner : pools_[p]->learners()) {
      learners_.push_back(learner.get());
      pool_of_.push_back(p);
    }
    ready_.emplace_back(pools_[p]->learners().size());
  }
  last_tasks_.assign(learners_.size(), {});
  parts_.assign(learners_.size(), std::vector<engine::Event>(learners_.front()->gradient_parts().size()));
  tasks_ = RingQueue<Task>(learners_.size() * static_cast<std::size_t>(pools_.front()->result_slots()));
}

void Scheduler::bind(const sma::Options& synchronization) {
  std::vector<std::vector<sma::ReplicaView>> views;
  for (const auto& pool : pools_) {
    views.emplace_back();
    for (const auto& learner : pool->learners()) {
      sma::ReplicaView view{&learner->stream(), learner->weights(), learner->gradient()};
      for (const learners::StateSlot& slot : learner->state()) view.state.push_back(slot.values.as<float>());
      views.back().push_back(std::move(view));
    }
  }
  synchronizer_.bind(synchronization, std::move(views));
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    const sma::UpdateOperands operands = synchronizer_.operands(pool_of_[j]);
    learners_[j]->set_update_sources({{operands.references[0], operands.references[1]}, operands.gradient});
  }
  steps_left_ = 0;
  enqueued_strides_ = 0;
}

void Scheduler::load(std::span<const dataflow::NamedTensor> tensors) {
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    LearnerPool& pool = *pools_[p];
    for (const auto& learner : pool.learners()) {
      pool.training_plan().parameters().from_canonical(pool.device(), tensors, learner->weights());
      learner->weights_were_set();
    }
    if (synchronizer_.has_center()) synchronizer_.set_center(p, pool.learners().front()->weights());
  }
  if (statistics_) forget_statistics();
}

double Scheduler::progress() const noexcept {
  return static_cast<double>(batches_) / static_cast<double>(options_.batches_per_epoch);
}

float Scheduler::learning_rate() const noexcept { return options_.learning_rate.at(progress(), learners()); }

Progress Scheduler::advance(dataflow::BatchRing& ring, int strides) {
  Progress progress;
  for (int stride = 0; stride < strides; ++stride) {
    while (strides_.size() >= kRunAhead) pop_stride(progress);
    const double start = engine::host::thread_cpu_seconds();
    enqueue_stride(ring);
    progress.host_seconds += engine::host::thread_cpu_seconds() - start;
  }
  return progress;
}

Progress Scheduler::drain() {
  Progress progress;
  while (!strides_.empty()) pop_stride(progress);
  return progress;
}

void Scheduler::pop_stride(Progress& progress) {
  const Stride stride = strides_.pop();
  for (std::size_t i = 0; i < stride.tasks; ++i) pop_task(progress);
  if (stride.averages) pop_averaging(progress);
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
    engine::fail(engine::ErrorKind::kDiverged,
                 "training diverged: {} weights of the replicas are not finite; lower learning_rate.base",
                 result.non_finite);
  }
  progress.replica_distance = distance_of(result, learners());
  progress.replica_spread = spread_of(result, learners());
}

void Scheduler::pop_task(Progress& progress) {
  const Task task = tasks_.pop();
  wait(task.ticket.done);
  task.ring->release(task.ticket.task);
  check_finite(task);
  ++progress.tasks;
  progress.examples += task.ticket.examples;
  progress.loss_sum += static_cast<double>(task.ticket.result->loss_sum);
  progress.correct += static_cast<double>(task.ticket.result->correct);
  progress.correct_top5 += static_cast<double>(task.ticket.result->correct_top5);
}

void Scheduler::check_finite(const Task& task) const {
  const Ticket& ticket = task.ticket;
  const engine::StepResult& result = *ticket.result;
  if (std::isfinite(result.loss_sum) && result.non_finite == 0) return;
  const auto& device = pools_[pool_of_[task.learner]]->device();
  const std::string what = std::isfinite(result.loss_sum)
                               ? fmt::format("{} elements of its step are not finite", result.non_finite)
                               : fmt::format("its loss is {}", std::abs(result.loss_sum));  // so that it is not -nan
  engine::fail(engine::ErrorKind::kDiverged,
               "training diverged: learner {} on {}, mini-batch {} (epoch {:.2f}): {}; {}", task.learner, device.name(),
               ticket.task, static_cast<double>(ticket.task) / static_cast<double>(options_.batches_per_epoch), what,
               remedy(ticket.task < learners_.size(), std::isfinite(result.loss_sum)));
}

void Scheduler::move_averages(bool rounds_them) {
  const float weight = moving_average_.take(progress());
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    engine::BFloat16* rounded = rounds_them ? pools_[p]->rounded_evaluation_weights() : nullptr;
    evaluation_ready_[p] = synchronizer_.read_model(p, pools_[p]->evaluation_weights(), weight, rounded);
  }
}

void Scheduler::refresh_evaluation_weights(Statistics statistics) {
  gathered_ = gather_model() ? std::optional(synchronizer_.ticket()) : std::nullopt;
  move_averages(true);
  if (!statistics_ || statistics == Statistics::kAveraged) return;
  if (!statistics_->are_of(batches_)) measure_statistics();
  for (std::size_t p = 0, j = 0; p < pools_.size(); j += ready_[p++].size()) {
    evaluation_ready_[p] = statistics_->enqueue_copy(*pools_[p], *learners_[j], evaluation_ready_[p]);
  }
}

void Scheduler::forget_statistics() {
  for (const engine::Event& copied : statistics_->copies()) wait(copied);
  statistics_->start();
}

void Scheduler::measure_statistics() {
  forget_statistics();
  spread_batches(
      *options_.statistics_ring, learners_.size(), kRunAhead,
      [&](std::size_t j, const dataflow::Batch& batch) {
        return learners_[j]->measure_statistics(batch, {.task = batch.number, .seed = options_.seed},
                                                evaluation_ready_[pool_of_[j]]);
      },
      [&](const engine::Event& event) { wait(event); },
      [&](const Ticket& ticket) { statistics_->add(ticket.statistics); });
  statistics_->finish(batches_);
}

Evaluation Scheduler::evaluate(dataflow::BatchRing& ring) {
  ARBALEST_CHECK(tasks_.empty());
  refresh_evaluation_weights(Statistics::kReestimated);
  Progress sums;
  spread_batches(
      ring, learners_.size(), kRunAhead,
      [&](std::size_t j, const dataflow::Batch& batch) {
        return learners_[j]->evaluate(batch, evaluation_ready_[pool_of_[j]]);
      },
      [&](const engine::Event& event) { wait(event); },
      [&](const Ticket& ticket) {
        sums.examples += ticket.examples;
        sums.loss_sum += static_cast<double>(ticket.result->loss_sum);
        sums.correct += static_cast<double>(ticket.result->correct);
        sums.correct_top5 += static_cast<double>(ticket.result->correct_top5);
      });
  if (sums.examples == 0) {
    engine::fail(engine::ErrorKind::kData,
                 "no example of the evaluated set can be read; `arbalest data verify` names them with their reasons");
  }
  const auto examples = static_cast<double>(sums.examples);
  std::optional<sma::AveragingResult> gathered;
  if (gathered_) {
    wait(gathered_->done);
    gathered = *gathered_->result;
  }
  return {.loss = sums.loss_sum / examples,
          .accuracy = sums.correct / examples,
          .top5_accuracy = sums.correct_top5 / examples,
          .examples = sums.examples,
          .replica_distance = gathered ? distance_of(*gathered, learners()) : 0.0,
          .replica_spread = gathered ? spread_of(*gathered, learners()) : 0.0};
}

double Scheduler::evaluate_replicas(dataflow::BatchRing& ring) {
  ARBALEST_CHECK(tasks_.empty() && options_.evaluates_replicas);
  double loss_sum = 0.0;
  std::int64_t examples = 0;
  while (const auto batch = ring.next()) {
    std::vector<Ticket> tickets;
    for (Learner* learner : learners_) tickets.push_back(learner->evaluate_own_weights(*batch));
    for (const Ticket& ticket : tickets) {
      wait(ticket.done);
      loss_sum += static_cast<double>(ticket.result->loss_sum);
      examples += ticket.examples;
    }
    ring.release(batch->number);
  }
  ring.restart();
  return loss_sum / static_cast<double>(std::max<std::int64_t>(examples, 1));
}

void Scheduler::resize(std::span<const int> learners) {
  ARBALEST_CHECK(options_.may_resize);
  regroup(synchronizer_.options(), learners, false);
}

void Scheduler::switch_to(const sma::Options& synchronization, RateScaling scaling, std::span<const int> learners) {
  options_.learning_rate.with_learners = scaling;
  const bool are_same = std::ranges::equal(learners, pools_, {}, {}, [](const auto& pool) { return pool->count(); });
  regroup(synchronization, learners, are_same && synchronization.keeps_state_at_switch());
}

void Scheduler::regroup(const sma::Options& synchronization, std::span<const int> learners, bool keeps_state) {
  ARBALEST_CHECK(tasks_.empty() && learners.size() == pools_.size());
  if (statistics_) forget_statistics();                          // the copies' events belong to streams that may go
  for (Learner* learner : learners_) learner->stream().drain();  // the last updates have not been waited for
  record_ready();
  const std::span<const engine::Event> restarted = synchronizer_.restart(ready_, is_right_after_averaging());
  for (const engine::Event& event : restarted) wait(event);
  for (std::size_t p = 0; p < pools_.size(); ++p) pools_[p]->activate(learners[p]);
  collect_learners();
  bind(synchronization);
  assign_center({}, keeps_state ? learners::OptimizerState::kKeep : learners::OptimizerState::kZero);
}

std::vector<dataflow::NamedTensor> Scheduler::snapshot(Statistics statistics) {
  abandon();
  refresh_evaluation_weights(statistics);
  for (const engine::Event& ready : evaluation_ready_) wait(ready);
  LearnerPool& first = *pools_.front();
  return first.training_plan().parameters().to_canonical(first.device(), first.evaluation_weights());
}

void Scheduler::wait(const engine::Event& event) {
  try {
    synchronizer_.wait(event);
  } catch (const engine::Error&) {
    // If a device failed, its learners' streams know which work failed.
    for (const Ticket& ticket : last_tasks_) {
      if (ticket.done.is_complete()) ticket.done.synchronize();
    }
    throw;
  }
}

void Scheduler::abandon() noexcept {
  synchronizer_.drain();
  for (Learner* learner : learners_) learner->stream().drain();
  while (!tasks_.empty()) {
    const Task task = tasks_.pop();
    task.ring->release(task.ticket.task);
  }
  while (!strides_.empty()) strides_.pop();
  synchronizer_.forget_spreads();
  while (!averagings_.empty()) averagings_.pop();
}

}  // namespace arbalest::scheduler
