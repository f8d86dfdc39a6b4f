#include "tests/autotuner/simulated_run.h"

#include <algorithm>
#include <cmath>

#include "tests/autotuner/gradient_samples.h"

namespace arbalest::tests {

namespace {

constexpr double kExamplesPerSecond = 1e6;  // at relative throughput 1

class Noise {
 public:
  Noise(const SimulatedDevice& device, std::uint64_t seed) : device_(device), random_(seed) {}

  // Returns the noise factor of the next window's rate.
  double next() {
    if (slow_windows_ == 0 && uniform(random_, 0.0, 1.0) < device_.straggler_chance) {
      slow_windows_ = 1 + static_cast<int>(uniform(random_, 0.0, 3.0));
      slowness_ = uniform(random_, 0.2, 0.7);
    }
    const double factor = std::max(0.1, 1.0 + device_.noise * normal_(random_));
    if (slow_windows_ == 0) return factor;
    --slow_windows_;
    return slowness_ * factor;
  }

 private:
  const SimulatedDevice& device_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  int slow_windows_ = 0;
  double slowness_ = 1.0;
};

class Player {
 public:
  Player(const SimulatedDevice& device, std::uint64_t seed, const autotuner::TunerOptions& options,
         const Beginning& beginning)
      : device_(device),
        gradients_(seed),
        tuner_(options, device.space, beginning.guess, beginning.extent),
        present_(tuner_.first().learners) {}

  // Simulates one window whose rate is `factor` times the curve's.
  void play(int window, double factor) {
    run_.learners.push_back(present_);
    const double settled = unsettled_ > 0 ? 0.5 : 1.0;
    unsettled_ = std::max(0, unsettled_ - 1);
    const double throughput = settled * device_.throughput(present_, window);
    const double worth = settled * device_.worth(present_, window);
    run_.worth.push_back(worth);
    if (run_.chosen == 0) {
      ++run_.windows_to_choice;
      run_.lost_windows += 1.0 - worth / best_of(device_, window).throughput;
    }
    if (device_.noise_scale) learn(window);
    const auto examples = std::llround(throughput * factor * kExamplesPerSecond);
    if (const auto decision = tuner_.add(4 * present_, examples, 1.0)) carry_out(*decision);
    run_.most_probes = std::max(run_.most_probes, tuner_.probes());
  }

  SimulatedRun result() { return std::move(run_); }

 private:
  void learn(int window) {
    GradientModel model{
        .signal = 1.0, .noise = kMiniBatch * device_.noise_scale(window), .dimensions = device_.gradient_dimensions};
    if (present_ == 1) model.signal = 0.5;
    for (int round = 0; round < kRounds; ++round) {
      autotuner::GradientSample sample = draw_sample(model, std::max(2, present_), kMiniBatch, 1, gradients_);
      if (present_ == 1) sample.source = autotuner::GradientSource::kSuccessive;
      sample.examples = static_cast<std::int64_t>(kMiniBatch) * present_;
      noise_scale_.add(sample);
    }
    efficiency_ = autotuner::learned_from(noise_scale_.estimate(), efficiency_, kMiniBatch);
    tuner_.set_efficiency(efficiency_);
  }

  void carry_out(autotuner::Decision decision) {
    run_.decisions.push_back(decision);
    if (decision.action == autotuner::Action::kGrow && decision.to.learners >= device_.does_not_fit) {
      ++run_.failed_resizes;
      decision = tuner_.out_of_memory();
      run_.decisions.push_back(decision);
    }
    if (decision.to.learners != present_) unsettled_ = 2;
    present_ = decision.to.learners;
    if (decision.done && run_.chosen == 0) run_.chosen = present_;
  }

  static constexpr double kMiniBatch = 64.0;
  static constexpr int kRounds = 4;  // per window

  const SimulatedDevice& device_;
  std::mt19937_64 gradients_;
  autotuner::NoiseScale noise_scale_{50'000.0};
  autotuner::Efficiency efficiency_;
  autotuner::Tuner tuner_;
  int present_;
  int unsettled_ = 2;
  SimulatedRun run_;
};

}  // namespace

SimulatedRun simulate(const SimulatedDevice& device, std::uint64_t seed, int windows,
                      const autotuner::TunerOptions& options, const Beginning& beginning) {
  Noise noise(device, seed ^ 0x9e3779b97f4a7c15U);
  Player player(device, seed ^ 0xbb67ae8584caa73bU, options, beginning);
  for (int window = 0; window < windows; ++window) player.play(window, noise.next());
  return player.result();
}

int resizes(const SimulatedRun& run, int begin, int end) {
  int count = 0;
  for (int window = std::max(begin, 1); window < end; ++window) {
    const auto at = static_cast<std::size_t>(window);
    if (run.learners[at] != run.learners[at - 1]) ++count;
  }
  return count;
}

double share_of_best(const SimulatedDevice& device, const SimulatedRun& run, int begin, int end) {
  double had = 0.0;
  double best = 0.0;
  for (int window = begin; window < end; ++window) {
    had += run.worth[static_cast<std::size_t>(window)];
    best += best_of(device, window).throughput;
  }
  return had / best;
}

}  // namespace arbalest::tests
