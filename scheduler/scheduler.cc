#include "scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/host/thread_time.h"
#include "engine/waiting.h"
#include "scheduler/learner_states.h"
#include "scheduler/replicas/host_copies.h"
#include "scheduler/replicas/replica_distance.h"
#include "scheduler/rounds/make_round.h"

namespace arbalest::scheduler {

using learners::Learner;
using learners::LearnerPool;

namespace {

using Pools = std::span<const std::unique_ptr<LearnerPool>>;

Pools created(Pools pools) {
  for (const auto& pool : pools) pool->create();
  return pools;
}

std::vector<engine::Device*> devices_of(Pools pools) {
  std::vector<engine::Device*> devices;
  for (const auto& pool : pools) devices.push_back(&pool->device());
  return devices;
}

sma::SynchronizerNeeds needs_of(const Options& options, const Replicas& replicas) {
  const int most = std::max(options.most_learners, static_cast<int>(replicas.size()));
  const LearnerPool& pool = replicas.pool(0);
  sma::SynchronizerNeeds needs{.schemes = {options.synchronization},
                               .most_learners = share_of(most, replicas.world()).all,
                               .may_resize = options.may_resize,
                               .state_slots = pool.state_slots(),
                               .rule = pool.rule(),
                               .ranges = pool.training_plan().parameters().update_ranges()};
  needs.measures_gradients = options.measures_gradients;
  needs.compares_copies = options.compare_rounds > 0;
  needs.process = replicas.world().rank();
  needs.processes = replicas.world().size();
  needs.schemes.insert(needs.schemes.end(), options.switches.begin(), options.switches.end());
  return needs;
}

sma::CentralSizes sizes_of(const LearnerPool& pool) {
  const dataflow::ParameterLayout& layout = pool.training_plan().parameters();
  return {layout.moving_elements(), layout.statistic_elements(), layout.frozen_elements(), layout.part_ranges()};
}

}  // namespace

Scheduler::Scheduler(const Options& options, Pools pools, engine::Collective& collective, engine::process::World& world)
    : options_(options),
      clock_(options.learning_rate, options.batches_per_epoch, options.seed),
      replicas_(created(pools), collective, world),
      synchronizer_(needs_of(options, replicas_), devices_of(pools), sizes_of(*pools.front()), collective,
                    kRunAhead + 1),
      results_(options.spike, clock_, replicas_),
      evaluation_(options.moving_average, options.statistics_ring, replicas_, clock_),
      iterations_(kRunAhead + 1) {
  couple(options_.synchronization);
  for (const auto& pool : pools) {
    pool->training_plan().parameters().initialize(pool->device(), options_.seed, pool->evaluation_weights());
    if (replicas_.exchange() == nullptr) break;  // the first pool has all parameters
  }
  load(whole_tensors(replicas_, [&](std::size_t p) { return pools[p]->evaluation_weights(); }));
}

Scheduler::~Scheduler() { abandon(); }

void Scheduler::couple(const sma::Options& synchronization) {
  clock_.set_learners(learners());
  results_.set_scheme(synchronization);
  synchronizer_.set_replicas(replicas_.vectors(), learners());
  round_ = make_round(synchronization, {replicas_, synchronizer_, clock_, results_});
  for (std::size_t p = 0; p < replicas_.pools().size(); ++p) {
    for (const auto& team : replicas_.pool(p).teams()) team->set_update_sources(round_->sources(p));
  }
}

void Scheduler::load(std::span<const dataflow::NamedTensor> tensors) {
  for (std::size_t p = 0; p < replicas_.pools().size(); ++p) {
    const LearnerPool& pool = replicas_.pool(p);
    for (Learner* learner : pool.learners()) {
      to_device(replicas_, p, tensors, learner->weights());
      learner->weights_were_set();
    }
    if (synchronizer_.has_central()) synchronizer_.central().set(p, pool.learners().front()->weights());
  }
  evaluation_.forget_statistics();
}

Progress Scheduler::advance(dataflow::BatchRing& ring, int iterations) {
  replicas_.take_share(ring, batches());
  Progress progress;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    while (iterations_.size() >= kRunAhead) take_iteration(progress);
    const double start = engine::host::thread_cpu_seconds();
    try {
      enqueue_iteration(ring, progress);
    } catch (...) {
      replicas_.rethrow_cause();
    }
    progress.host_seconds += engine::host::thread_cpu_seconds() - start;
  }
  return progress;
}

void Scheduler::enqueue_iteration(dataflow::BatchRing& ring, Progress& progress) {
  if (clock_.take_drops()) round_->restart_at_drop();
  const std::size_t tasks = replicas_.tasks().size();
  const IterationEnd end = round_->enqueue(ring, progress);
  rounds_ += end.rounds;
  const bool is_measured = round_->measure_gradients();
  iterations_.push({.tasks = replicas_.tasks().size() - tasks,
                    .averaging = end.averaging,
                    .measures = is_measured,
                    .compares = end.rounds > 0 && is_comparison_due() && round_->compare_copies(),
                    .round = rounds_,
                    .batches = batches()});
  // Within a round there is no central model to add to the average.
  if (!evaluation_.average().is_due(clock_.epochs()) || !round_->is_between_rounds()) return;
  round_->make_readable(progress);
  round_->gather();
  round_->resume_after(evaluation_.add(*round_));
}

bool Scheduler::is_comparison_due() const {
  return options_.compare_rounds > 0 && rounds_ % static_cast<std::uint64_t>(options_.compare_rounds) == 0;
}

void Scheduler::take_iteration(Progress& progress) {
  const Iteration iteration = iterations_.pop();
  for (std::size_t i = 0; i < iteration.tasks; ++i) results_.take(replicas_.tasks().pop(), progress);
  if (iteration.averaging) results_.take_averaging(*iteration.averaging, progress);
  if (iteration.compares) results_.check_copies(synchronizer_.take_comparison(), iteration.round, iteration.batches);
  if (!iteration.measures) return;
  const sma::VarianceSample sample = synchronizer_.take_variance();
  progress.gradient_square_mean += sample.square_mean;
  progress.mean_gradient_square += sample.mean_square;
  ++progress.gradient_samples;
}

Progress Scheduler::drain() {
  Progress progress;
  while (!iterations_.empty()) take_iteration(progress);
  rounds_ += round_->drain(progress);
  return progress;
}

Evaluation Scheduler::evaluate(dataflow::BatchRing& ring) {
  ARBALEST_CHECK(replicas_.tasks().empty());
  const std::optional<sma::AveragingTicket> gathered = evaluation_.refresh(*round_, Statistics::kReestimated);
  Evaluation evaluation = evaluate_weights(replicas_, evaluation_, ring,
                                           batches() / static_cast<std::uint64_t>(options_.batches_per_epoch));
  if (gathered) {
    replicas_.wait(gathered->done);
    evaluation.replica_distance = distance_of(*gathered->result, learners());
    evaluation.replica_spread = spread_of(*gathered->result, learners());
  }
  return evaluation;
}

double Scheduler::evaluate_replicas(dataflow::BatchRing& ring) {
  ARBALEST_CHECK(replicas_.tasks().empty() && options_.evaluates_replicas);
  return scheduler::evaluate_replicas(replicas_, ring);
}

std::optional<double> Scheduler::training_loss(dataflow::BatchRing& ring, int rounds) {
  ARBALEST_CHECK(batches() == 0 && replicas_.tasks().empty());
  return scheduler::training_loss(replicas_, ring, rounds, options_.seed);
}

void Scheduler::resize(std::span<const int> learners) {
  ARBALEST_CHECK(options_.may_resize);
  const sma::Options same = round_->options();  // which ends with its round
  regroup(same, learners, false);
}

void Scheduler::switch_to(const sma::Options& synchronization, RateScaling scaling, std::span<const int> learners) {
  clock_.set_scaling(scaling);
  const bool are_same =
      std::ranges::equal(learners, replicas_.pools(), {}, {}, [](const auto& pool) { return pool->count(); });
  const bool is_taken_over = round_->has_equal_replicas() && synchronization.scheme == sma::Scheme::kAsyncSgd;
  regroup(synchronization, learners, are_same && (synchronization.keeps_state_at_switch() || is_taken_over));
}

void Scheduler::regroup(const sma::Options& synchronization, std::span<const int> learners, bool keeps_state) {
  evaluation_.forget_statistics();  // the copies' events belong to streams that may go
  for (Learner* learner : replicas_.all())
    engine::drain(learner->stream());  // the last updates have not been waited for
  round_->gather();
  if (keeps_state) round_->hand_out_state();
  for (const engine::Event& event : round_->restart_central()) replicas_.wait(event);
  round_.reset();  // before activate(), after which other processes may begin the next round
  replicas_.activate(learners);
  couple(synchronization);
  replicas_.assign(synchronizer_.central(), {},
                   keeps_state ? learners::OptimizerState::kKeep : learners::OptimizerState::kZero);
  settle();  // the first step must not change what another learner is still assigned
  if (keeps_state) round_->take_over_state();
}

void Scheduler::change_teams() {
  evaluation_.forget_statistics();  // the copies' events belong to streams that may go
  settle();
  TrainingState position;
  round_->save_position(position);
  const sma::Options same = round_->options();  // which ends with its round
  const std::vector<Learner*> before(replicas_.all().begin(), replicas_.all().end());
  std::vector<int> counts;
  for (const auto& pool : replicas_.pools()) counts.push_back(pool->count());
  round_.reset();
  replicas_.activate(counts);
  couple(same);
  round_->restore_position(position);
  for (std::size_t j = 0; j < before.size(); ++j) {
    Learner& learner = replicas_[j];
    learner.assign(before[j]->weights(), {}, learners::OptimizerState::kKeep);
    for (std::size_t slot = 0; slot < learner.state().size(); ++slot) {
      learner.assign_state(slot, before[j]->state()[slot].values, {});
    }
    learner.continue_from(before[j]->steps());
  }
  settle();  // the learners before may be freed now
}

std::vector<dataflow::NamedTensor> Scheduler::snapshot(Statistics statistics) {
  abandon();
  evaluation_.refresh(*round_, statistics);
  for (std::size_t p = 0; p < replicas_.pools().size(); ++p) replicas_.wait(evaluation_.ready(p));
  return whole_tensors(replicas_, [&](std::size_t p) { return replicas_.pool(p).evaluation_weights(); });
}

// Copies to the host read memory that the streams' work writes, so this work must have ended.
void Scheduler::settle() {
  ARBALEST_CHECK(replicas_.tasks().empty() && iterations_.empty());
  synchronizer_.settle();
  replicas_.settle();
}

void Scheduler::verify_copies() {
  settle();
  if (options_.compare_rounds == 0 || !round_->compare_copies()) return;
  results_.check_copies(synchronizer_.take_comparison(), rounds_, batches());
}

TrainingState Scheduler::save(TrainingState memory) {
  verify_copies();
  round_->hand_out_state();
  if (round_->gather()) synchronizer_.settle();  // on all devices, each of which may have a part of the model
  TrainingState state = std::move(memory);
  state.batches = batches();
  state.drops = clock_.drops();
  state.rounds = rounds_;
  state.averaged_at = evaluation_.average().last();
  state.losses = results_.losses();
  // Rank 0 has what all devices of all processes hold alike; the others give their parts of a split model.
  const auto read_whole = [&](Tensors before, const PoolVector& vector_of) {
    if (replicas_.world().rank() == 0) return whole_tensors(replicas_, vector_of, std::move(before));
    gather_parts(replicas_, dataflow::VectorPart::kAll, vector_of);
    return Tensors();
  };
  state.model = read_whole(std::move(state.model), [&](std::size_t p) { return round_->model(p); });
  round_->save(state);
  if (evaluation_.average().exists()) {
    state.average =
        read_whole(std::move(state.average), [&](std::size_t p) { return replicas_.pool(p).evaluation_weights(); });
  } else {
    state.average.clear();
  }
  save_learners(replicas_, state);
  return state;
}

void Scheduler::restore(const TrainingState& state, const sma::Options& synchronization, RateScaling scaling,
                        std::span<const int> learners) {
  abandon();
  settle();
  round_.reset();
  clock_.set_scaling(scaling);
  replicas_.activate(learners);
  couple(synchronization);
  load(state.model);
  clock_.continue_from(state.batches, state.drops);
  rounds_ = state.rounds;
  results_.continue_from(state.losses);
  MovingAverage& average = evaluation_.average();
  if (!state.average.empty() && average.exists()) {
    average.continue_from(state.averaged_at);
    for (std::size_t p = 0; p < replicas_.pools().size(); ++p) {
      to_device(replicas_, p, state.average, replicas_.pool(p).evaluation_weights());
    }
  }
  if (state.learners.size() == static_cast<std::size_t>(replicas_.share().all)) {
    round_->restore(state);
    restore_learners(replicas_, state);
    round_->take_over_state();  // all learners were saved with the server's
  } else {
    for (Learner* learner : replicas_.all()) learner->zero_state();
  }
  verify_copies();
}

void Scheduler::abandon() noexcept {
  if (round_) round_->interrupt();
  synchronizer_.drain();
  replicas_.drain();
  while (!iterations_.empty()) iterations_.pop();
  synchronizer_.forget();
  if (round_) round_->forget();
}

}  // namespace arbalest::scheduler
