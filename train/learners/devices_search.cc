#include "train/learners/devices_search.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine/base/error.h"
#include "messages/text.h"

namespace arbalest::jobs {

namespace {

// Number of examples over which gradients are averaged: one epoch, because the noise scale changes from epoch to epoch,
// but at most 2,000 mini-batches, which are enough for an estimate.
double gradient_memory(const dataflow::ShuffledOrder& order) {
  constexpr std::int64_t kMostBatches = 2000;
  return static_cast<double>(std::min(order.batches_per_epoch(), kMostBatches) * order.batch_size());
}

}  // namespace

FirstGuess first_guess(const std::vector<TunedDevice>& devices) {
  int guess = 0;
  for (const TunedDevice& device : devices) {
    if (device.usual == 0) return {};
    guess = guess == 0 ? device.usual : std::min(guess, device.usual);
  }
  return {.learners = std::vector<int>(devices.size(), guess)};
}

FirstGuess first_guess(const JobOptions& job) { return first_guess(tuned_devices(job, 1)); }

std::vector<int> learners_of(const DeviceConfigurations& devices) {
  std::vector<int> learners;
  for (const autotuner::Configuration& device : devices) learners.push_back(device.learners);
  return learners;
}

autotuner::DevicesTuner DevicesSearch::make_tuner(const FirstGuess& guess) const {
  std::vector<autotuner::DeviceKind> described;
  std::vector<int> guesses;
  for (const TunedKind& kind : kinds_) {
    described.push_back(kind.described);
    if (!guess.learners.empty()) guesses.push_back(guess.learners[kind.devices.front()]);
  }
  std::optional<autotuner::TeamOptions> teams;
  if (const int at_once = learners_at_once(); at_once > 0) teams = {.most_at_once = at_once, .guess = guess.team};
  try {
    return {{.window = {}, .search = {}, .quiet = quiet_}, std::move(described), guesses, guess.extent, teams};
  } catch (const std::invalid_argument& error) {
    engine::fail(engine::ErrorKind::kInvalidJob, "learners.per_device.auto: {}; widen its bounds", error.what());
  }
}

int DevicesSearch::learners_at_once() const {
  return kinds_.size() == 1 ? std::ranges::min(devices_, {}, &TunedDevice::at_once).at_once : 0;
}

LearnerChange DevicesSearch::change_to(const std::vector<autotuner::Configuration>& by_kind, std::string reason,
                                       const std::optional<autotuner::Evidence>& evidence) const {
  return {.to = learners_of(by_device(by_kind)),
          .reason = std::move(reason),
          .evidence = evidence,
          .ends_search = !tuner_.searching(),
          .team = learners_at_once() > 0 ? by_kind.front().team : 0};
}

DevicesSearch::DevicesSearch(const JobOptions& job, std::vector<TunedDevice> devices, const FirstGuess& guess,
                             const dataflow::ShuffledOrder& order, const autotuner::QuietOptions& quiet)
    : devices_(std::move(devices)),
      bounds_(*job.tuned),
      kinds_(find_kinds(devices_, bounds_.min)),
      quiet_(quiet),
      tuner_(make_tuner(guess)),
      reason_(guess.reason),
      mini_batch_(static_cast<double>(job.training.batch_size)) {
  if (bounds_.objective != TuningObjective::kGoodput) return;
  noise_scale_.emplace(gradient_memory(order));
  tuner_.set_efficiency(efficiency_);
}

LearnerChange DevicesSearch::first() const {
  return change_to(tuner_.present(),
                   reason_.empty() ? "the search for the fastest number of learners begins here" : reason_,
                   std::nullopt);
}

void DevicesSearch::first_does_not_fit(const std::string& cause) {
  std::vector<int> fewer = learners_of(present());
  const int failed = std::ranges::max(fewer);
  for (TunedDevice& device : devices_) device.ceiling = std::min(device.ceiling, failed - 1);
  kinds_ = find_kinds(devices_, bounds_.min);
  for (int& learners : fewer) learners = std::min(learners, std::max(1, failed / 2));
  tuner_ = make_tuner({.learners = fewer});
  if (noise_scale_) tuner_.set_efficiency(efficiency_);
  reason_ =
      fmt::format("the search begins here, as {} on each device do not fit: {}", counted(failed, "learner"), cause);
}

void DevicesSearch::learn(const scheduler::Progress& measured, int learners, std::int64_t examples) {
  if (!noise_scale_) return;
  unseen_examples_ += examples;
  if (measured.gradient_samples == 0) return;
  const bool is_alone = learners == 1;
  noise_scale_->add({.source = is_alone ? autotuner::GradientSource::kSuccessive : autotuner::GradientSource::kLearners,
                     .gradients = std::max(2, learners),
                     .mini_batch = mini_batch_,
                     .rounds = measured.gradient_samples,
                     .square_mean = measured.gradient_square_mean,
                     .mean_square = measured.mean_gradient_square,
                     .examples = std::exchange(unseen_examples_, 0)});
  efficiency_ = autotuner::learned_from(noise_scale_->estimate(), efficiency_, mini_batch_);
  tuner_.set_efficiency(efficiency_);
}

std::optional<LearnerChange> DevicesSearch::add(std::int64_t tasks, std::int64_t examples, double seconds,
                                                const autotuner::ProcessorUse& processor) {
  const std::optional<autotuner::DevicesDecision> decision = tuner_.add(tasks, examples, seconds, processor);
  if (!decision) return std::nullopt;
  return change_to(decision->to, decision->step.reason, decision->step.evidence);
}

LearnerChange DevicesSearch::out_of_memory(const std::vector<int>& present, const std::vector<int>& failed,
                                           const std::string& cause) {
  if (failed != present) lost_.add(present, failed);  // else another size of teams failed
  const autotuner::DevicesDecision back = tuner_.out_of_memory();
  return change_to(back.to,
                   fmt::format("{} ({}: {})", back.step.reason, counted(std::ranges::max(failed), "learner"), cause),
                   back.step.evidence);
}

DeviceConfigurations DevicesSearch::by_device(const std::vector<autotuner::Configuration>& by_kind) const {
  DeviceConfigurations devices(devices_.size());
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    for (const std::size_t device : kinds_[k].devices) devices[device] = by_kind[k];
  }
  return devices;
}

DeviceConfigurations DevicesSearch::measured_with(const autotuner::Point& point) const {
  return by_device(tuner_.beside_others(point.configuration.learners));
}

std::vector<DeviceConfigurations> DevicesSearch::equal_counts() const {
  const auto size = [](const TunedKind& kind) { return kind.every.size(); };
  const std::size_t numbers = size(*std::ranges::min_element(kinds_, {}, size));
  std::vector<DeviceConfigurations> counts;
  for (std::size_t number = 0; number < numbers; ++number) {
    std::vector<autotuner::Configuration> by_kind;
    for (const TunedKind& kind : kinds_) by_kind.push_back(kind.every[number]);
    DeviceConfigurations devices = by_device(by_kind);
    if (!lost_.contain(learners_of(devices))) counts.push_back(std::move(devices));
  }
  return counts;
}

}  // namespace arbalest::jobs
