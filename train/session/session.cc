#include "train/session/session.h"

#include <algorithm>
#include <optional>

#include "dataflow/input/derived/joined_dataset.h"
#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "messages/failure.h"
#include "messages/text.h"
#include "options/data/validation_check.h"
#include "options/loading/load_job.h"
#include "options/readers/learners_reader.h"
#include "options/readers/schedule_check.h"
#include "options/split/split_check.h"
#include "options/synchronization/job_schemes.h"
#include "train/data/dataset_caching.h"
#include "train/data/dataset_loading.h"
#include "train/processes/shared_kernels.h"
#include "train/processes/shared_layout.h"
#include "train/processes/shared_results.h"
#include "train/session/memory_estimate.h"

namespace arbalest::jobs {

namespace {

const dataflow::CachedData* data_on(std::size_t device, const std::vector<dataflow::CachedData>& cached) {
  return cached.empty() ? nullptr : &cached[device];
}

SplitSize size_of(const dataflow::Dataset& data, const std::vector<dataflow::CachedData>& cached) {
  const auto stored = data.stored_bytes();
  const std::size_t bytes = stored ? stored->bytes() : 0;
  return {data.size(), !cached.empty(), bytes + data.memory_bytes()};
}

// A GPU that is in an exchange of a split model must not be in an all-reduce, so the whole gradient comes first
// (engine/cuda/exchange/nccl_exchange.h).
std::int64_t part_bytes(const JobOptions& job, std::span<const engine::ExchangeMember> places) {
  return !places.empty() && job.devices.front().is_cuda() ? 0 : gradient_part_bytes(job);
}

// The first epoch has no spikes.
// A process of several sees its own losses only, so none watches them.
std::optional<scheduler::SpikeRule> spike_rule(const JobOptions& job, std::int64_t batches_per_epoch) {
  const DivergenceOptions& divergence = job.training.divergence;
  if (!divergence.rolls_back || job.learners_elsewhere > 0) return std::nullopt;
  return scheduler::SpikeRule{.factor = divergence.spike_factor,
                              .first_batch = static_cast<std::uint64_t>(batches_per_epoch)};
}

}  // namespace

std::vector<engine::ExchangeMember> connect_split(const JobOptions& job,
                                                  std::span<const std::unique_ptr<engine::Device>> devices,
                                                  engine::process::World& world) {
  return is_split(job) ? engine::make_exchange(devices, world) : std::vector<engine::ExchangeMember>{};
}

namespace {

struct PoolData {
  std::span<const engine::ExchangeMember> places;
  const std::vector<dataflow::CachedData>& training;
  const std::vector<dataflow::CachedData>& evaluation;
};

// `team`: the largest size of teams from then on; 0: as it is.
void set_team(std::span<const std::unique_ptr<learners::LearnerPool>> pools, int team) {
  if (team == 0) return;
  for (const auto& pool : pools) pool->set_team(team);
}

// `team`: as PoolOptions::team.
std::vector<std::unique_ptr<learners::LearnerPool>> make_pools_of(
    int team, const JobOptions& job, std::span<const std::unique_ptr<engine::Device>> devices, const PoolData& data,
    const dataflow::ParameterLayout* layout) {
  std::vector<std::unique_ptr<learners::LearnerPool>> pools;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const learners::PoolOptions options{.batch = job.training.batch_size,
                                        .evaluation_batch = evaluation_batch_size(job),
                                        .precision = job.training.precision,
                                        .without_decay = job.optimizer.without_decay,
                                        .exchange = data.places.empty() ? engine::ExchangeMember{} : data.places[d],
                                        .team = team,
                                        .learner = {.result_slots = scheduler::result_slots(longest_iteration(job)),
                                                    .rule = job.optimizer.rule,
                                                    .clip_gradient_norm = job.optimizer.clip_gradient_norm,
                                                    .gradient_part_bytes = part_bytes(job, data.places),
                                                    .sums_gradients = sums_gradients(job),
                                                    .training_data = data_on(d, data.training),
                                                    .evaluation_data = data_on(d, data.evaluation),
                                                    .measures_statistics = job.training.reestimates_statistics,
                                                    .evaluates_own_weights = job.reports_loss_gap}};
    if (d > 0) {
      layout = &pools.front()->training_plan().parameters();
      // A rule answers alike on all, but for what a library has on another kind of GPU.
      if (job.training.kernels == engine::KernelSelection::kTimed) {
        devices[d]->take_kernel_choices(devices.front()->kernel_choices());
      }
    }
    pools.push_back(
        std::make_unique<learners::LearnerPool>(*job.graph, *devices[d], options, job.learners_per_device[d], layout));
  }
  return pools;
}

}  // namespace

std::vector<std::unique_ptr<learners::LearnerPool>> make_pools(const JobOptions& job,
                                                               std::span<const std::unique_ptr<engine::Device>> devices,
                                                               std::span<const engine::ExchangeMember> places,
                                                               const std::vector<dataflow::CachedData>& training_data,
                                                               const std::vector<dataflow::CachedData>& evaluation_data,
                                                               const dataflow::ParameterLayout* layout) {
  const PoolData data{places, training_data, evaluation_data};
  if (!job.chooses_team) return make_pools_of(job.team, job, devices, data, layout);
  const int all = most_learners_of_device(job);
  auto pools = make_pools_of(all, job, devices, data, layout);
  if (all == 1 || pools.front()->training_plan().layers_in_turn().empty()) return pools;
  pools.clear();
  return make_pools_of(1, job, devices, data, layout);
}

Session::Session(const JobOptions& job, const std::string& data_root, const engine::DeviceOptions& device_options,
                 Input input, engine::process::World* world)
    : host_pool_(engine::host::usable_cores()) {
  engine::process::World& processes = world == nullptr ? alone_ : *world;
  ARBALEST_CHECK(!job.training.chooses_precision);
  together(processes, [&] {
    engine::DeviceOptions options = device_options;
    options.kernels = job.training.kernels;
    for (const engine::DeviceSpec& spec : job.devices) devices_.push_back(engine::open_device(spec, options));
  });
  const std::vector<engine::ExchangeMember> places = connect_split(job, devices_, processes);
  std::optional<AvailableMemory> available;
  together(processes, [&] {
    available.emplace(devices_, processes.local_size());
    load_data(job, data_root, input, engine::host::MemoryBudget(processes.local_size()));
    if (processes.size() == 1) return;
    training_data_->begin_read_log();  // before rings read
    evaluation_data_->begin_read_log();
  });
  make_shared_pools(job, places, processes);
  together(processes, [&] { fit(job, *available, processes); });
  const std::int64_t batches_per_epoch = training_order_->batches_per_epoch();
  collective_ = engine::make_collective(devices_, processes);
  std::vector<sma::Options> switches = schemes_of(job);
  switches.erase(switches.begin());
  scheduler_ = std::make_unique<scheduler::Scheduler>(
      scheduler::Options{.learning_rate = job.learning_rate,
                         .synchronization = job.synchronization,
                         .switches = switches,
                         .seed = job.training.seed,
                         .batches_per_epoch = batches_per_epoch,
                         .moving_average = job.training.moving_average,
                         .evaluates_replicas = job.reports_loss_gap,
                         .may_resize = may_resize(job),
                         .most_learners = jobs::most_learners(job),
                         .measures_gradients = measures_gradients(job) && processes.rank() == 0,
                         .spike = spike_rule(job, batches_per_epoch),
                         .compare_rounds = job.compare_rounds,
                         .statistics_ring = statistics_ring_.get()},
      pools_, *collective_, processes);
}

void Session::make_shared_pools(const JobOptions& job, std::span<const engine::ExchangeMember> places,
                                engine::process::World& processes) {
  const auto make = [&](const dataflow::ParameterLayout* layout) {
    pools_ = make_pools(job, devices_, places, cached_training_data_, cached_evaluation_data_, layout);
  };
  const auto layout = [&]() -> const dataflow::ParameterLayout& {
    return pools_.front()->training_plan().parameters();
  };
  // The GPU of rank 0 chooses the kernels of all, unless a rule does.
  const bool waits_for_choices =
      processes.size() > 1 && job.devices.front().is_cuda() && job.training.kernels == engine::KernelSelection::kTimed;
  together(processes, [&] {
    if (!waits_for_choices || processes.rank() == 0) make(nullptr);
  });
  if (waits_for_choices) {
    share_kernel_choices(processes, devices_);
    together(processes, [&] {
      if (processes.rank() != 0) make(nullptr);
    });
  }
  const std::optional<dataflow::ParameterLayout> of_all = layout_of_all(processes, device(), layout());
  together(processes, [&] {
    if (of_all) make(&*of_all);
  });
  require_same_layout(processes, layout(), job.training.precision);
  const std::string warning = warning_of_unlike_kernels(processes, job.devices.front());
  if (!warning.empty() && processes.rank() == 0) warnings_.push_back(warning);
}

void Session::fit(const JobOptions& job, const AvailableMemory& available, const engine::process::World& processes) {
  const SplitSizes sizes = split_sizes();
  const MemoryEstimate estimate(job, pools_, sizes, available, processes.rank(), processes.size());
  estimate.check();
  learner_ceiling_ = std::ranges::max(estimate.most_learners());
  const auto takes_teams = [](const auto& opened) { return opened->takes_teams(); };
  if (job.tunes_team && std::ranges::all_of(devices_, takes_teams)) learners_at_once_ = estimate.most_at_once();
  if (const std::string lowered = estimate.lowered_bound(); !lowered.empty()) warnings_.push_back(lowered);
  make_rings(job, sizes, estimate.ring_learners());
}

void Session::load_data(const JobOptions& job, const std::string& data_root, Input input,
                        const engine::host::MemoryBudget& budget) {
  const auto place = [&](const dataflow::Dataset& data) {
    return input == Input::kRing ? std::vector<dataflow::CachedData>{} : cache_dataset(data, devices_, warnings_);
  };
  load_sets(job, data_root, budget);
  cached_evaluation_data_ = place(*evaluation_data_);
  training_order_ =
      std::make_unique<dataflow::ShuffledOrder>(training_data_->size(), job.training.batch_size, job.training.seed);
  cached_training_data_ = place(*training_data_);
  // The files may hold another number of examples than is known of the dataset.
  const std::int64_t batches = training_order_->batches_per_epoch();
  const std::string problem = long_round(job, batches);
  if (!problem.empty()) engine::fail(engine::ErrorKind::kInvalidJob, "{}", problem);
  dataflow::FieldIssues issues;
  check_steps(job, batches, issues);
  if (!issues.empty()) engine::fail(engine::ErrorKind::kInvalidJob, "{}", issues.all().front().message);
  add_warnings(job);
}

// Adds what the job reader could not report, because only the files tell the sizes of the sets.
void Session::add_warnings(const JobOptions& job) {
  if (!job.data.training_examples) {
    for (std::string& text : size_warnings(job, training_order_->batches_per_epoch())) {
      warnings_.push_back(std::move(text));
    }
  }
  if (!job.data.has_validation() || job.data.validation_examples) return;
  std::string few = validation_warning(job.data, validation_examples(), job.training.target_accuracy);
  if (!few.empty()) warnings_.push_back(std::move(few));
}

void Session::load_sets(const JobOptions& job, const std::string& data_root, const engine::host::MemoryBudget& budget) {
  const std::int64_t batch = evaluation_batch_size(job);
  evaluation_data_ =
      load_dataset(job.data, data_root, dataflow::Split::kTest, host_pool_, warnings_, Decoding::kAhead, budget);
  test_examples_ = evaluation_data_->size();
  test_order_ = std::make_unique<dataflow::SequentialOrder>(test_examples_, batch);
  TrainingSets sets = load_training_sets(job.data, data_root, host_pool_, warnings_, budget);
  if (sets.validation) {
    validation_order_ = std::make_unique<dataflow::SequentialOrder>(sets.validation->size(), batch, test_examples_);
    evaluation_data_ = dataflow::join(std::move(evaluation_data_), std::move(sets.validation), budget);
  }
  training_data_ = std::move(sets.training);
}

SplitSizes Session::split_sizes() const {
  SplitSizes sizes;
  sizes.training = size_of(*training_data_, cached_training_data_);
  SplitSize evaluation = size_of(*evaluation_data_, cached_evaluation_data_);
  if (validation_order_) {
    SplitSize& validation = sizes.validation.emplace(evaluation);
    validation.examples = validation_examples();
    validation.bytes = evaluation.bytes / static_cast<std::size_t>(evaluation.examples) *
                       static_cast<std::size_t>(validation.examples);
    evaluation.bytes -= validation.bytes;
    evaluation.examples = test_examples_;
  }
  sizes.test = evaluation;
  return sizes;
}

std::int64_t Session::skipped_examples() const {
  std::int64_t skipped = 0;
  for (const auto* ring : {&training_ring_, &test_ring_, &validation_ring_}) {
    if (*ring) skipped += (*ring)->skipped();
  }
  return skipped;
}

std::string Session::first_skipped() const {
  for (const auto* ring : {&training_ring_, &test_ring_, &validation_ring_}) {
    if (*ring && (*ring)->skipped() > 0) return (*ring)->first_skipped();
  }
  return "";
}

std::vector<std::string> Session::reading_warnings() const {
  std::vector<std::string> all = training_data_->warnings();
  for (std::string& text : evaluation_data_->warnings()) all.push_back(std::move(text));
  return all;
}

std::int64_t Session::learner_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& pool : pools_) bytes += pool->count() * static_cast<std::int64_t>(pool->learner_bytes());
  return bytes;
}

int Session::largest_team() const {
  int largest = 1;
  for (const auto& pool : pools_) {
    for (const auto& team : pool->teams()) largest = std::max(largest, static_cast<int>(team->size()));
  }
  return largest;
}

void Session::prepare(std::span<const int> learners_per_device, int team) {
  for (std::size_t d = 0; d < pools_.size(); ++d) pools_[d]->keep(learners_per_device[d], team);
  try {
    for (std::size_t d = 0; d < pools_.size(); ++d) pools_[d]->prepare(learners_per_device[d], team);
  } catch (...) {
    release_idle();  // including those that were made on devices with enough memory
    throw;
  }
}

void Session::resize(std::span<const int> learners_per_device, int team) {
  set_team(pools_, team);
  scheduler_->resize(learners_per_device);
}

void Session::change_teams(int team) {
  set_team(pools_, team);
  scheduler_->change_teams();
}

void Session::limit_threads(int most) {
  for (const auto& pool : pools_) pool->limit_threads(most);
}

void Session::switch_to(const SynchronizationSwitch& to) {
  if (!to.learners_per_device.empty()) {
    prepare(to.learners_per_device);
    scheduler_->switch_to(to.to, to.with_learners, to.learners_per_device);
    release_idle();
    return;
  }
  std::vector<int> present;
  for (const auto& pool : pools_) present.push_back(pool->count());
  scheduler_->switch_to(to.to, to.with_learners, present);
}

void Session::restore(const scheduler::TrainingState& state, const sma::Options& synchronization,
                      scheduler::RateScaling scaling, std::span<const int> learners_per_device, int team) {
  prepare(learners_per_device, team);
  set_team(pools_, team);
  scheduler_->restore(state, synchronization, scaling, learners_per_device);
  release_idle();
  training_ring_->restart(state.batches);
}

void Session::release_idle() {
  for (const auto& pool : pools_) pool->release_idle();
}

std::unique_ptr<dataflow::BatchRing> Session::make_ring(const dataflow::Dataset& data, dataflow::BatchOrder& order,
                                                        const RingSize& size, int learners) {
  engine::Device& device = *devices_.front();
  const int slots = size.slots(learners);
  if (size.is_cached) return std::make_unique<dataflow::BatchRing>(order, device, host_pool_, slots);
  return std::make_unique<dataflow::BatchRing>(data, order, device, host_pool_, slots);
}

void Session::make_rings(const JobOptions& job, const SplitSizes& sizes, int learners) {
  test_ring_ = make_ring(*evaluation_data_, *test_order_, evaluation_ring_size(job, sizes.test), learners);
  if (sizes.validation) {
    validation_ring_ =
        make_ring(*evaluation_data_, *validation_order_, evaluation_ring_size(job, *sizes.validation), learners);
  }
  training_ring_ = make_ring(*training_data_, *training_order_, training_ring_size(job, sizes.training), learners);
  if (reestimates_statistics(job, *pools_.front())) make_statistics_ring(job, sizes.training, learners);
}

void Session::make_statistics_ring(const JobOptions& job, const SplitSize& training, int learners) {
  const RingSize size = statistics_ring_size(job, training);
  statistics_examples_ =
      std::make_unique<dataflow::ShuffledOrder>(training.examples, job.training.batch_size, job.training.seed);
  statistics_order_ = std::make_unique<dataflow::FirstBatches>(*statistics_examples_, size.batches_per_pass);
  statistics_ring_ = make_ring(*training_data_, *statistics_order_, size, learners);
}

}  // namespace arbalest::jobs
