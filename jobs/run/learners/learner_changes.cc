#include "jobs/run/learners/learner_changes.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "engine/cuda_devices.h"
#include "engine/error.h"
#include "jobs/messages/failure.h"
#include "jobs/messages/text.h"
#include "jobs/options/readers/learners_reader.h"

namespace arbalest::jobs {

namespace {

// The GPUs of a machine may be of several models; its cores are of one.
std::string model_of(const engine::DeviceSpec& device) {
  if (!device.is_cuda()) return "";
  const engine::CudaDeviceInfo gpu = engine::find_cuda_device(device);
  return fmt::format("{}, {} multiprocessors", gpu.name, gpu.multiprocessors);
}

// Number of examples over which gradients are averaged: one epoch, because the noise scale changes from epoch to epoch,
// but at most 2,000 mini-batches, which are enough for an estimate.
double gradient_memory(const dataflow::ShuffledOrder& order) {
  constexpr std::int64_t kMostBatches = 2000;
  return static_cast<double>(std::min(order.batches_per_epoch(), kMostBatches) * order.batch_size());
}

}  // namespace

std::string describe_changes(const JobOptions& job) {
  if (job.tuned)
    return job.tuned->objective == TuningObjective::kGoodput ? "the number of most goodput is searched"
                                                             : "the fastest number is searched";
  if (job.schedule.size() < 2) return "";
  const LearnerStep& last = job.schedule.back();
  return fmt::format("{} from {} on", fmt::join(last.per_device, ", "),
                     last.at_epoch ? fmt::format("epoch {:g}", *last.at_epoch)
                                   : fmt::format("mini-batch {}", grouped(static_cast<std::int64_t>(last.at_batch))));
}

std::vector<autotuner::Configuration> all_counts_on(const engine::DeviceSpec& device, const autotuner::Bounds& bounds) {
  return autotuner::all_counts(bounds, engine::core_count(device));
}

std::vector<std::vector<autotuner::Configuration>> counts_on(std::span<const engine::DeviceSpec> devices,
                                                             const autotuner::Bounds& bounds) {
  std::vector<std::vector<autotuner::Configuration>> suitable;
  std::vector<std::vector<autotuner::Configuration>> all;
  for (const engine::DeviceSpec& device : devices) {
    all.push_back(all_counts_on(device, bounds));
    suitable.push_back(autotuner::counts_of_cores(bounds, engine::core_count(device)));
  }
  return autotuner::common_counts(suitable).empty() ? all : suitable;
}

std::vector<int> learners_of(const DeviceConfigurations& devices) {
  std::vector<int> learners;
  for (const autotuner::Configuration& device : devices) learners.push_back(device.learners);
  return learners;
}

std::vector<TunedChanges::Kind> TunedChanges::find_kinds(const JobOptions& job, int ceiling) {
  const autotuner::Bounds bounds{job.tuned->min, ceiling};
  const auto spaces = counts_on(job.devices, bounds);
  std::vector<Kind> kinds;
  for (std::size_t d = 0; d < job.devices.size(); ++d) {
    const engine::DeviceSpec& device = job.devices[d];
    const auto& space = spaces[d];
    auto every = all_counts_on(device, bounds);
    const std::string model = model_of(device);
    const auto alike = std::ranges::find_if(kinds, [&](const Kind& kind) {
      return kind.model == model && kind.described.space == space && kind.every == every;
    });
    if (alike == kinds.end()) {
      kinds.push_back({{1, space}, std::move(every), model, {d}});
    } else {
      ++alike->described.devices;
      alike->devices.push_back(d);
    }
  }
  return kinds;
}

autotuner::FleetTuner TunedChanges::make_tuner(const std::vector<Kind>& kinds, const std::vector<int>& guess,
                                               autotuner::Extent extent) {
  std::vector<autotuner::DeviceKind> described;
  std::vector<int> guesses;
  for (const Kind& kind : kinds) {
    described.push_back(kind.described);
    if (!guess.empty()) guesses.push_back(guess[kind.devices.front()]);
  }
  try {
    return {{}, std::move(described), guesses, extent};
  } catch (const std::invalid_argument& error) {
    engine::fail(engine::ErrorKind::kInvalidJob, "learners.per_device.auto: {}; widen its bounds", error.what());
  }
}

TunedChanges::TunedChanges(const JobOptions& job, Session& session, const FirstGuess& guess)
    : session_(session),
      kinds_(find_kinds(job, session.learner_ceiling())),
      tuner_(make_tuner(kinds_, guess.learners, guess.extent)),
      present_(job.learners_per_device),
      mini_batch_(static_cast<double>(job.training.batch_size)) {
  begin(job, guess);
  if (job.tuned->objective != TuningObjective::kGoodput) return;
  noise_scale_.emplace(gradient_memory(session.training_order()));
  tuner_.set_efficiency(efficiency_);
}

// The session has at least the minimum of the bounds, so the last of the numbers tried needs no more memory.
void TunedChanges::begin(const JobOptions& job, const FirstGuess& guess) {
  std::string reason = guess.reason;
  for (;;) {
    const std::vector<int> first = learners_of(present());
    if (first == present_ && reason.empty()) return;
    try {
      if (first != present_) session_.prepare(first);
      change_ = {first, reason.empty() ? "the search for the fastest number of learners begins here" : reason,
                 std::nullopt};
      return;
    } catch (const std::exception& error) {
      if (!is_shortage(error)) throw;
      const int failed = std::ranges::max(first);
      kinds_ = find_kinds(job, failed - 1);
      std::vector<int> fewer = first;
      for (int& learners : fewer) learners = std::min(learners, std::max(1, failed / 2));
      tuner_ = make_tuner(kinds_, fewer, autotuner::Extent::kEverywhere);
      reason = fmt::format("the search begins here, as {} on each device do not fit: {}", counted(failed, "learner"),
                           as_error(error).what());
    }
  }
}

// The preparation uses the session, so it must end first.
TunedChanges::~TunedChanges() {
  if (preparation_.valid()) preparation_.wait();
}

// While learners are prepared, seconds do not count, because the preparation shares the training's cores. Gradients do.
void TunedChanges::observe(const scheduler::Progress& progress, double seconds) {
  if (noise_scale_) learn(progress);
  if (change_) return;
  if (std::exchange(releases_, false)) release();
  if (const auto decision = tuner_.add(progress.tasks, progress.examples, seconds)) decide(*decision);
}

// The present learners trained all of `progress`, because a change drains the streams first.
void TunedChanges::learn(const scheduler::Progress& progress) {
  unseen_examples_ += progress.examples;
  if (progress.gradient_samples == 0) return;
  const int learners = std::accumulate(present_.begin(), present_.end(), 0);
  const bool is_alone = learners == 1;
  noise_scale_->add({.source = is_alone ? autotuner::GradientSource::kSuccessive : autotuner::GradientSource::kLearners,
                     .gradients = std::max(2, learners),
                     .mini_batch = mini_batch_,
                     .rounds = progress.gradient_samples,
                     .square_mean = progress.gradient_square_mean,
                     .mean_square = progress.mean_gradient_square,
                     .examples = std::exchange(unseen_examples_, 0)});
  efficiency_ = autotuner::learned_from(noise_scale_->estimate(), efficiency_, mini_batch_);
  tuner_.set_efficiency(efficiency_);
}

std::optional<LearnerChange> TunedChanges::due(std::uint64_t batch) {
  if (!change_ || !is_prepared()) return std::nullopt;
  try {
    if (preparation_.valid()) preparation_.get();
  } catch (const std::exception& error) {
    if (!is_shortage(error)) throw;
    const int failed = std::ranges::max(change_->to);
    lost_.add(present_, change_->to);
    decide(tuner_.out_of_memory());
    change_->reason += fmt::format(" ({}: {})", counted(failed, "learner"), as_error(error).what());
    return due(batch);
  }
  present_ = change_->to;
  releases_ = !tuner_.searching();
  return std::exchange(change_, std::nullopt);
}

DeviceConfigurations TunedChanges::by_device(const std::vector<autotuner::Configuration>& by_kind) const {
  DeviceConfigurations devices(present_.size());
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    for (const std::size_t device : kinds_[k].devices) devices[device] = by_kind[k];
  }
  return devices;
}

DeviceConfigurations TunedChanges::measured_with(const autotuner::Point& point) const {
  return by_device(tuner_.beside_others(point.configuration.learners));
}

std::vector<DeviceConfigurations> TunedChanges::equal_counts() const {
  std::vector<DeviceConfigurations> counts;
  for (std::size_t number = 0; number < kinds_.front().every.size(); ++number) {
    std::vector<autotuner::Configuration> by_kind;
    for (const Kind& kind : kinds_) by_kind.push_back(kind.every[number]);
    DeviceConfigurations devices = by_device(by_kind);
    if (!lost_.contain(learners_of(devices))) counts.push_back(std::move(devices));
  }
  return counts;
}

bool TunedChanges::is_prepared() const {
  return !preparation_.valid() || preparation_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void TunedChanges::decide(const autotuner::FleetDecision& decision) {
  change_ = {learners_of(by_device(decision.to)), decision.step.reason, decision.step.evidence};
  if (change_->to == present_) return;
  if (preparation_.valid()) preparation_.wait();
  try {
    preparation_ = std::async(std::launch::async, [this, to = change_->to] { session_.prepare(to); });
  } catch (const std::system_error&) {  // no thread is left: treated as a failed preparation
    std::promise<void> failed;
    failed.set_exception(std::current_exception());
    preparation_ = failed.get_future();
  }
}

// Runs beside the training; a later preparation waits for it.
void TunedChanges::release() {
  if (preparation_.valid()) preparation_.wait();
  try {
    preparation_ = std::async(std::launch::async, [this] { session_.release_idle(); });
  } catch (const std::system_error&) {  // no thread is left
    session_.release_idle();
  }
}

FirstGuess first_guess(const JobOptions& job) {
  int guess = 0;
  for (const engine::DeviceSpec& device : job.devices) {
    if (device.is_cuda()) return {};
    const int cores = default_learners(device);
    guess = guess == 0 ? cores : std::min(guess, cores);
  }
  return {.learners = std::vector<int>(job.devices.size(), guess)};
}

namespace {

class ScheduledChanges final : public LearnerChanges {
 public:
  // `next`: the first step that has not begun.
  ScheduledChanges(std::vector<LearnerStep> schedule, Session& session, std::size_t next)
      : session_(session), schedule_(std::move(schedule)), next_(next) {}

  void observe(const scheduler::Progress& /*progress*/, double /*seconds*/) override {
    if (std::exchange(releases_, false)) session_.release_idle();  // on this thread, like the preparation
  }

  std::optional<LearnerChange> due(std::uint64_t batch) override {
    if (next_ == schedule_.size() || !is_due(schedule_[next_], batch)) return std::nullopt;
    // A round may be longer than the time between two steps.
    while (next_ + 1 < schedule_.size() && is_due(schedule_[next_ + 1], batch)) ++next_;
    const LearnerStep& step = schedule_[next_++];
    session_.prepare(step.per_device);
    releases_ = true;
    return LearnerChange{step.per_device, "the schedule says so", std::nullopt};
  }
  std::size_t steps_done() const override { return next_; }

 private:
  bool is_due(const LearnerStep& step, std::uint64_t batch) const {
    if (step.at_epoch) return session_.scheduler().progress() >= *step.at_epoch;
    // check_steps() ensures that a stride begins there, unless the schedule has changed at a resumption.
    return batch >= step.at_batch;
  }

  Session& session_;
  std::vector<LearnerStep> schedule_;
  std::size_t next_;
  bool releases_ = false;  // whether idle learners are still allocated
};

}  // namespace

std::unique_ptr<LearnerChanges> make_learner_changes(JobOptions& job, Session& session, const LearnerCache* cache) {
  if (job.tuned) {
    FirstGuess guess = first_guess(job);
    const auto remembered = cache == nullptr ? std::nullopt : cache->find(job, job.warnings);
    if (remembered) {
      guess = {
          *remembered, autotuner::Extent::kAround,
          fmt::format(
              "the search for the fastest number of learners begins where `arbalest tune` has ended, or as near as "
              "there may be learners ({})",
              cache->file_of(job).string())};
    }
    return std::make_unique<TunedChanges>(job, session, guess);
  }
  if (job.schedule.size() > 1) return std::make_unique<ScheduledChanges>(job.schedule, session, 1);
  return nullptr;
}

std::unique_ptr<LearnerChanges> continue_learner_changes(const JobOptions& job, Session& session,
                                                         const RunState& state) {
  if (job.tuned) {
    JobOptions present = job;
    present.learners_per_device = state.learners_per_device;
    return std::make_unique<TunedChanges>(
        present, session, FirstGuess{.learners = state.learners_per_device, .extent = autotuner::Extent::kAround});
  }
  if (job.schedule.size() < 2) return nullptr;
  return std::make_unique<ScheduledChanges>(job.schedule, session, std::max<std::size_t>(state.learner_steps_done, 1));
}

}  // namespace arbalest::jobs
