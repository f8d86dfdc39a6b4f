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

std::size_t learner_count(std::span<const std::unique_ptr<LearnerPool>> pools) {
  std::size_t count = 0;
  for (const auto& pool : pools) count += static_cast<std::size_t>(pool->count());
  return count;
}

// Against values that are not finite. The rate has had no part in the loss of a learner's first mini-batch.
const char* remedy(bool is_first, bool loss_is_finite) {
  if (!is_first) return "lower learning_rate.base, or check the data's normalization";
  if (!loss_is_finite) return "check the initial values of the model's layers, and the data's normalization";
  return "check the initial values of the model's layers and the data's normalization, or lower learning_rate.base";
}

}  // namespace

void Progress::add(const Progress& later) {
  tasks += later.tasks;
  examples += later.examples;
  loss_sum += later.loss_sum;
  correct += later.correct;
  correct_top5 += later.correct_top5;
  if (later.replica_distance > 0.0) replica_distance = later.replica_distance;
  host_seconds += later.host_seconds;
  gradient_square_mean += later.gradient_square_mean;
  mean_gradient_square += later.mean_gradient_square;
  gradient_samples += later.gradient_samples;
}

Scheduler::Scheduler(const Options& options, std::span<const std::unique_ptr<LearnerPool>> pools,
                     engine::Collective& collective)
    : options_(options),
      pools_(pools),
      moving_average_(options.moving_average_epochs),
      tasks_(0),
      averagings_(kRunAhead + 1),
      evaluation_ready_(pools.size()) {
  create_learners(collective);
  LearnerPool& first = *pools_.front();
  const dataflow::ParameterLayout& layout = first.training_plan().parameters();
  layout.initialize(first.device(), options_.seed, first.evaluation_weights());
  load(layout.to_canonical(first.device(), first.evaluation_weights()));
}

Scheduler::~Scheduler() { abandon(); }

void Scheduler::create_learners(engine::Collective& collective) {
  std::vector<engine::Device*> devices;
  for (const auto& pool : pools_) devices.push_back(&pool->device());
  if (learner_count(pools_) > 1 || options_.may_resize) {
    const dataflow::ParameterLayout& layout = pools_.front()->training_plan().parameters();
    averager_.emplace(options_.averaging, devices, layout.elements(), layout.statistic_elements(), collective,
                      kRunAhead + 1);
  }
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    const int device = static_cast<int>(p);
    const float* const central[2] = {averager_ ? averager_->central_buffer(device, 0) : nullptr,
                                     averager_ ? averager_->central_buffer(device, 1) : nullptr};
    pools_[p]->create(central);
  }
  if (options_.statistics_ring != nullptr) statistics_.emplace(*pools_.front());
  collect_learners();
}

void Scheduler::collect_learners() {
  learners_.clear();
  pool_of_.clear();
  ready_.clear();
  std::vector<std::vector<const float*>> replicas;
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    std::vector<const float*>& weights = replicas.emplace_back();
    for (const auto& learner : pools_[p]->learners()) {
      learners_.push_back(learner.get());
      pool_of_.push_back(p);
      weights.push_back(learner->weights());
    }
    ready_.emplace_back(weights.size());
  }
  last_tasks_.assign(learners_.size(), {});
  tasks_ = RingQueue<Task>(learners_.size() * static_cast<std::size_t>(result_slots(options_.averaging.period)));
  if (averager_) averager_->set_replicas(std::move(replicas));
}

void Scheduler::load(std::span<const dataflow::NamedTensor> tensors) {
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    LearnerPool& pool = *pools_[p];
    for (const auto& learner : pool.learners()) {
      pool.training_plan().parameters().from_canonical(pool.device(), tensors, learner->weights());
      learner->weights_were_set();
    }
    if (averager_) averager_->set_central(static_cast<int>(p), pool.learners().front()->weights());
  }
  if (statistics_) forget_statistics();
}

double Scheduler::progress() const noexcept {
  return static_cast<double>(batches_) / static_cast<double>(options_.batches_per_epoch);
}

float Scheduler::learning_rate() const noexcept { return options_.learning_rate.at(progress(), learners()); }

Progress Scheduler::advance(dataflow::BatchRing& ring, int rounds) {
  const std::size_t tasks_per_round = learners_.size() * static_cast<std::size_t>(options_.averaging.period);
  Progress progress;
  for (int round = 0; round < rounds; ++round) {
    while (tasks_.size() >= tasks_per_round * kRunAhead) pop_round(progress);
    const double start = engine::host::thread_cpu_seconds();
    enqueue_round(ring);
    progress.host_seconds += engine::host::thread_cpu_seconds() - start;
  }
  return progress;
}

Progress Scheduler::drain() {
  Progress progress;
  while (!tasks_.empty()) pop_round(progress);
  return progress;
}

void Scheduler::enqueue_round(dataflow::BatchRing& ring) {
  if (const int drops = options_.learning_rate.drops_before(progress()); drops != drops_) {
    drops_ = drops;
    if (averages()) restart();
  }
  StepParameters local{.seed = options_.seed, .learning_rate = learning_rate()};
  for (int step = 1; step < options_.averaging.period; ++step) {
    for (std::size_t j = 0; j < learners_.size(); ++j) {
      last_tasks_[j] = enqueue_gradient(ring, *learners_[j], local);
      enqueue_update(j, {}, ring);
    }
  }
  StepParameters corrected = local;
  if (averages()) {
    corrected.alpha = options_.averaging.alpha_for(learners());
    corrected.parity = static_cast<std::uint32_t>(averager_->parity());
  }
  for (std::size_t p = 0, j = 0; p < ready_.size(); ++p) {
    for (engine::Event& ready : ready_[p]) {
      ready = learners_[j]->stream().record();
      last_tasks_[j] = enqueue_gradient(ring, *learners_[j], corrected);
      ++j;
    }
  }
  std::span<const engine::Event> read;
  if (averages()) {
    read = averager_->average(ready_, corrected.alpha);
    averagings_.push(averager_->ticket());
  }
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    enqueue_update(j, averages() ? read[pool_of_[j]] : engine::Event{}, ring);
  }
  if (moving_average_.is_due(progress())) move_averages(false);
}

void Scheduler::enqueue_update(std::size_t learner, const engine::Event& after, dataflow::BatchRing& ring) {
  Ticket& ticket = last_tasks_[learner];
  if (averages()) {
    learners_[learner]->update(ticket, after);
  } else {
    learners_[learner]->update_alone(ticket);
  }
  tasks_.push({ticket, learner, &ring});
}

Ticket Scheduler::enqueue_gradient(dataflow::BatchRing& ring, Learner& learner, const StepParameters& parameters) {
  const auto batch = ring.next();
  ARBALEST_CHECK(batch.has_value());  // training batches never end
  ++batches_;
  StepParameters step = parameters;
  step.task = batch->number;
  return learner.gradient(*batch, step);
}

void Scheduler::restart() {
  for (std::size_t p = 0, j = 0; p < ready_.size(); ++p) {
    for (engine::Event& ready : ready_[p]) ready = learners_[j++]->stream().record();
  }
  const std::span<const engine::Event> copied = averager_->restart(ready_);
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    const std::size_t p = pool_of_[j];
    learners_[j]->restart(averager_->central_buffer(static_cast<int>(p), averager_->parity()), copied[p]);
  }
}

void Scheduler::pop_round(Progress& progress) {
  const std::size_t tasks = learners_.size() * static_cast<std::size_t>(options_.averaging.period);
  for (std::size_t i = 0; i < tasks; ++i) pop_task(progress);
  if (!averages()) return;
  const sma::AveragingTicket averaging = averagings_.pop();
  wait(averaging.done);
  if (averaging.result->non_finite > 0.0F) {
    engine::fail(engine::ErrorKind::kDiverged,
                 "training diverged: {} weights of the replicas are not finite; lower learning_rate.base",
                 averaging.result->non_finite);
  }
  progress.replica_distance = std::sqrt(averaging.result->squared_distance / static_cast<double>(learners()));
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
                               : fmt::format("its loss is {}", std::abs(result.loss_sum));  // not -nan
  engine::fail(engine::ErrorKind::kDiverged,
               "training diverged: learner {} on {}, mini-batch {} (epoch {:.2f}): {}; {}", task.learner, device.name(),
               ticket.task, static_cast<double>(ticket.task) / static_cast<double>(options_.batches_per_epoch), what,
               remedy(ticket.task < learners_.size(), std::isfinite(result.loss_sum)));
}

void Scheduler::move_averages(bool rounds_them) {
  const float weight = moving_average_.take(progress());
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    float* average = pools_[p]->evaluation_weights();
    engine::BFloat16* rounded = rounds_them ? pools_[p]->rounded_evaluation_weights() : nullptr;
    evaluation_ready_[p] = averages() ? averager_->move_average(static_cast<int>(p), average, weight, rounded)
                                      : learners_.front()->move_average(average, weight, rounded);
  }
}

void Scheduler::refresh_evaluation_weights(Statistics statistics) {
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
                 "no example of the test data can be read; `arbalest data verify` names them with their reasons");
  }
  const auto examples = static_cast<double>(sums.examples);
  return {.loss = sums.loss_sum / examples,
          .accuracy = sums.correct / examples,
          .top5_accuracy = sums.correct_top5 / examples,
          .examples = sums.examples};
}

void Scheduler::resize(std::span<const int> learners) {
  ARBALEST_CHECK(options_.may_resize && tasks_.empty() && learners.size() == pools_.size());
  if (statistics_) forget_statistics();                          // its events are of streams that may go
  for (Learner* learner : learners_) learner->stream().drain();  // nobody has waited for the last updates
  // The weights of one learner alone are z.
  if (!averages()) averager_->set_central(0, learners_.front()->weights());
  for (std::size_t p = 0; p < pools_.size(); ++p) pools_[p]->activate(learners[p]);
  collect_learners();
  restart();
}

std::vector<dataflow::NamedTensor> Scheduler::snapshot(Statistics statistics) {
  abandon();
  refresh_evaluation_weights(statistics);
  for (const engine::Event& ready : evaluation_ready_) wait(ready);
  LearnerPool& first = *pools_.front();
  return first.training_plan().parameters().to_canonical(first.device(), first.evaluation_weights());
}

void Scheduler::wait(const engine::Event& event) {
  if (!averages()) {
    event.synchronize();
    return;
  }
  try {
    averager_->wait(event);
  } catch (const engine::Error&) {
    // If it was a device, its learners' streams know what they were at.
    for (const Ticket& ticket : last_tasks_) {
      if (ticket.done.is_complete()) ticket.done.synchronize();
    }
    throw;
  }
}

void Scheduler::abandon() noexcept {
  if (averages()) averager_->drain();
  for (Learner* learner : learners_) learner->stream().drain();
  while (!tasks_.empty()) {
    const Task task = tasks_.pop();
    task.ring->release(task.ticket.task);
  }
  while (!averagings_.empty()) averagings_.pop();
}

}  // namespace arbalest::scheduler
