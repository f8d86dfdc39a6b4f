#include "scheduler/scheduler.h"

#include <algorithm>

#include "engine/error.h"
#include "engine/host/thread_time.h"
#include "engine/process/all_gather.h"
#include "scheduler/shards/sharded_pushes.h"

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

std::vector<engine::Device*> devices_of(std::span<const std::unique_ptr<LearnerPool>> pools) {
  std::vector<engine::Device*> devices;
  for (const auto& pool : pools) devices.push_back(&pool->device());
  return devices;
}

// The learners of this process among those of all, of which this one has `own`.
dataflow::BatchShare share_of(int own, engine::process::World& world) {
  dataflow::BatchShare share{.first = 0, .count = own, .all = 0};
  const std::vector<double> counts = engine::process::all_gather(world, own);
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const int count = static_cast<int>(counts[rank]);
    if (static_cast<int>(rank) < world.rank()) share.first += count;
    share.all += count;
  }
  return share;
}

sma::SynchronizerNeeds needs_of(const Options& options, std::span<const std::unique_ptr<LearnerPool>> pools,
                                engine::process::World& world) {
  const int most = std::max(options.most_learners, learner_count(pools));
  sma::SynchronizerNeeds needs{.schemes = {options.synchronization},
                               .most_learners = share_of(most, world).all,
                               .may_resize = options.may_resize,
                               .state_slots = pools.front()->state_slots(),
                               .rule = pools.front()->rule(),
                               .ranges = pools.front()->training_plan().parameters().update_ranges()};
  needs.measures_gradients = options.measures_gradients;
  needs.compares_copies = options.compare_rounds > 0;
  needs.process = world.rank();
  needs.processes = world.size();
  needs.schemes.insert(needs.schemes.end(), options.switches.begin(), options.switches.end());
  return needs;
}

sma::CenterSizes sizes_of(const LearnerPool& pool) {
  const dataflow::ParameterLayout& layout = pool.training_plan().parameters();
  return {layout.moving_elements(), layout.statistic_elements(), layout.frozen_elements(), layout.part_ranges()};
}

}  // namespace

Scheduler::Scheduler(const Options& options, std::span<const std::unique_ptr<LearnerPool>> pools,
                     engine::Collective& collective, engine::process::World& world)
    : options_(options),
      pools_(pools),
      world_(world),
      synchronizer_(needs_of(options, pools, world), devices_of(pools), sizes_of(*pools.front()), collective,
                    kRunAhead + 1),
      moving_average_(options.moving_average),
      tasks_(0),
      strides_(kRunAhead + 1),
      averagings_(kRunAhead + 1),
      evaluation_ready_(pools.size()) {
  if (options.spike) loss_watch_.emplace(*options.spike);
  create_learners();
  for (const auto& pool : pools_) {
    pool->training_plan().parameters().initialize(pool->device(), options_.seed, pool->evaluation_weights());
    if (exchange() == nullptr) break;  // the first pool has all parameters
  }
  load(whole([&](std::size_t p) { return pools_[p]->evaluation_weights(); }));
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
  share_ = share_of(static_cast<int>(learners_.size()), world_);
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
      if (synchronization.scheme == sma::Scheme::kAsyncSgd) {
        view.pushed = learner->pushed(synchronization.period);
        view.gradient_scale = learner->gradient_scale(synchronization.period);
      }
      for (const learners::StateSlot& slot : learner->state()) view.state.push_back(slot.values.as<float>());
      views.back().push_back(std::move(view));
    }
  }
  synchronizer_.bind(synchronization, std::move(views), share_.all - share_.count);
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    const sma::UpdateOperands operands = synchronizer_.operands(pool_of_[j]);
    learners_[j]->set_update_sources(
        {{operands.references[0], operands.references[1]}, operands.gradient, operands.push_every, operands.shared});
  }
  restart_pushes();
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

double Scheduler::epochs_of(std::uint64_t batches) const noexcept {
  return static_cast<double>(batches) / static_cast<double>(options_.batches_per_epoch);
}

double Scheduler::progress() const noexcept { return epochs_of(batches_); }

float Scheduler::learning_rate() const noexcept {
  const auto scheduled = static_cast<double>(options_.learning_rate.at(progress(), learners()));
  return static_cast<float>(scheduled * rate_factor_);
}

void Scheduler::lower_rate(double factor, int drops) {
  rate_factor_ = factor;
  extra_drops_ = drops;
}

void Scheduler::take_share(dataflow::BatchRing& ring, std::uint64_t first) const {
  if (world_.size() > 1 && ring.share() != share_) ring.restart(first, share_);
}

// The learners of a split model take mini-batches together.
void Scheduler::take_evaluation_share(dataflow::BatchRing& ring) const {
  if (exchange() != nullptr) return take_share(ring, 0);
  if (world_.size() == 1) return;
  const std::uint64_t epoch = batches_ / static_cast<std::uint64_t>(options_.batches_per_epoch);
  const dataflow::BatchShare share = share_.moved(epoch * static_cast<std::uint64_t>(share_.all / world_.size()));
  if (ring.share() != share) ring.restart(0, share);
}

Progress Scheduler::advance(dataflow::BatchRing& ring, int strides) {
  take_share(ring, batches_);
  Progress progress;
  for (int stride = 0; stride < strides; ++stride) {
    const bool has_server = synchronizer_.coupling() == sma::Coupling::kServer;
    while (strides_.size() >= kRunAhead) pop_stride(progress);
    const double start = engine::host::thread_cpu_seconds();
    try {
      has_server ? advance_pushes(ring, progress) : enqueue_stride(ring);
    } catch (...) {
      rethrow_cause();
    }
    progress.host_seconds += engine::host::thread_cpu_seconds() - start;
  }
  return progress;
}

int Scheduler::strides_apart() const {
  const bool has_server = synchronizer_.coupling() == sma::Coupling::kServer;
  return has_server ? synchronizer_.options().clocks_apart() + kRunAhead : kRunAhead;
}

Progress Scheduler::drain() {
  Progress progress;
  while (!strides_.empty()) pop_stride(progress);
  drain_pushes(progress);
  return progress;
}

void Scheduler::resize(std::span<const int> learners) {
  ARBALEST_CHECK(options_.may_resize);
  regroup(synchronizer_.options(), learners, false);
}

void Scheduler::switch_to(const sma::Options& synchronization, RateScaling scaling, std::span<const int> learners) {
  options_.learning_rate.with_learners = scaling;
  const bool are_same = std::ranges::equal(learners, pools_, {}, {}, [](const auto& pool) { return pool->count(); });
  // Replicas with equal weights have equal state, which a server, or a single learner, takes over.
  const bool are_equal =
      synchronizer_.coupling() == sma::Coupling::kGradient || synchronizer_.coupling() == sma::Coupling::kNone;
  const bool is_taken_over = are_equal && synchronization.scheme == sma::Scheme::kAsyncSgd;
  regroup(synchronization, learners, are_same && (synchronization.keeps_state_at_switch() || is_taken_over));
}

void Scheduler::regroup(const sma::Options& synchronization, std::span<const int> learners, bool keeps_state) {
  ARBALEST_CHECK(tasks_.empty() && learners.size() == pools_.size());
  if (statistics_) forget_statistics();                          // the copies' events belong to streams that may go
  for (Learner* learner : learners_) learner->stream().drain();  // the last updates have not been waited for
  gather_server_weights();
  if (keeps_state) hand_out_server_state();
  record_ready();
  const std::span<const engine::Event> restarted = synchronizer_.restart(ready_, is_right_after_averaging());
  for (const engine::Event& event : restarted) wait(event);
  for (std::size_t p = 0; p < pools_.size(); ++p) pools_[p]->activate(learners[p]);
  collect_learners();
  bind(synchronization);
  assign_center({}, keeps_state ? learners::OptimizerState::kKeep : learners::OptimizerState::kZero);
  // The first step on shared weights must not change what another learner is still assigned.
  if (synchronizer_.coupling() == sma::Coupling::kShared) settle();
  if (keeps_state) take_over_state();
}

void Scheduler::wait(const engine::Event& event) {
  try {
    synchronizer_.wait(event);
  } catch (const engine::Error&) {
    // If a device failed, its learners' streams know which work failed.
    if (exchange() == nullptr) {
      for (const Ticket& ticket : last_tasks_) {
        if (ticket.done.is_complete()) ticket.done.synchronize();
      }
    }
    rethrow_cause();
  }
}

void Scheduler::rethrow_cause() {
  if (exchange() == nullptr) throw;
  exchange()->break_up();  // other devices may wait for the one that failed
  for (const Learner* learner : learners_) {
    try {
      synchronizer_.wait(learner->stream().record());  // which ends a collective that waits, too
    } catch (const engine::Error& error) {
      if (error.kind() != engine::ErrorKind::kPeer) throw;
    }
  }
  throw;
}

void Scheduler::abandon() noexcept {
  if (sharded_) sharded_->abandon();
  synchronizer_.drain();
  for (Learner* learner : learners_) learner->stream().drain();
  while (!tasks_.empty()) {
    const Task task = tasks_.pop();
    task.ring->release(task.ticket.task);
  }
  while (!strides_.empty()) strides_.pop();
  synchronizer_.forget_spreads();
  synchronizer_.forget_comparisons();
  while (!averagings_.empty()) averagings_.pop();
  forget_pushes();
}

}  // namespace arbalest::scheduler
