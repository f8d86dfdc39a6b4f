#include "tests/autotuner/simulated_device.h"

#include <algorithm>
#include <cmath>

namespace arbalest::tests {

namespace {

// Throughput over octaves of learners.
using Shape = std::function<double(double x)>;

double octaves(int learners) { return std::log2(static_cast<double>(learners)); }

Shape draw_law(std::mt19937_64& random, double last) {
  const double a = uniform(random, 0.0, 0.3);
  const double peak = std::exp2(uniform(random, 0.0, last + 0.3));
  const double b = (1.0 - a) / (peak * peak);
  return [=](double x) {
    const double n = std::exp2(x);
    return n / (1.0 + a * (n - 1.0) + b * n * (n - 1.0));
  };
}

Shape tent(double peak, double rise, double fall) {
  return [=](double x) { return std::exp2(x < peak ? rise * (x - peak) : fall * (peak - x)); };
}

Shape draw_tent(std::mt19937_64& random, double last) {
  const double peak = uniform(random, 0.0, last);
  const double rise = uniform(random, 0.3, 1.0);
  return tent(peak, rise, uniform(random, 0.05, 1.0));
}

Shape draw_plateau(std::mt19937_64& random, double last) {
  const double knee = uniform(random, 0.0, last);
  const double rise = uniform(random, 0.4, 1.0);
  return tent(knee, rise, uniform(random, 0.0, 0.03));
}

Shape draw_one_peak(std::mt19937_64& random, double last) {
  const double kind = uniform(random, 0.0, 3.0);
  if (kind < 1.0) return draw_law(random, last);
  return kind < 2.0 ? draw_tent(random, last) : draw_plateau(random, last);
}

Shape draw_two_peaks(std::mt19937_64& random, double last) {
  const double first = uniform(random, 0.0, last / 2.0);
  const double left_rise = uniform(random, 0.2, 1.0);
  const double left_fall = uniform(random, 0.2, 1.0);
  const double right_rise = uniform(random, 0.2, 1.0);
  const double right_fall = uniform(random, 0.2, 1.0);
  // At the bottom, a peak's width is descent (1 + fall / rise). Halfway down to the valley it is half of this.
  const double descent = std::max(uniform(random, 0.5, 1.5), 2.0 / (1.0 + left_fall / left_rise));
  const double climb = std::max(uniform(random, 0.5, 1.5), 2.0 / (1.0 + right_rise / right_fall));
  const double valley = first + descent;
  const Shape left = tent(first, left_rise, left_fall);
  const Shape right = tent(valley + climb, right_rise, right_fall);
  const double height = left(valley) / right(valley);
  return [=](double x) { return x < valley ? left(x) : height * right(x); };
}

ThroughputCurve steady(Shape shape) {
  return [shape = std::move(shape)](int learners, int) { return shape(octaves(learners)); };
}

ThroughputCurve drift(Shape from, Shape to, double level) {
  return [=, from = std::move(from), to = std::move(to)](int learners, int window) {
    const double way = std::clamp((window - kDriftBegins) / double{kDriftEnds - kDriftBegins}, 0.0, 1.0);
    const double x = octaves(learners);
    return std::pow(from(x), 1.0 - way) * std::pow(level * to(x), way);
  };
}

}  // namespace

double uniform(std::mt19937_64& random, double low, double high) {
  constexpr double kRange = 18446744073709551616.0;  // 2^64
  return low + (high - low) * static_cast<double>(random()) / kRange;
}

std::string name_of(Family family) {
  switch (family) {
    case Family::kUnimodal: return "unimodal";
    case Family::kPlateau: return "plateau";
    case Family::kNoisy: return "noisy";
    case Family::kTwoPeaks: return "two peaks";
    case Family::kDrifting: return "drifting";
    case Family::kStragglers: return "stragglers";
    case Family::kCliff: break;
  }
  return "cliff";
}

namespace {

SimulatedDevice draw(Family family, std::mt19937_64& random, const std::vector<autotuner::Configuration>& space) {
  const double last = octaves(space.back().learners);
  SimulatedDevice device{.space = space, .noise = uniform(random, 0.01, 0.04)};
  switch (family) {
    case Family::kUnimodal:
      device.throughput = steady(uniform(random, 0.0, 2.0) < 1.0 ? draw_law(random, last) : draw_tent(random, last));
      break;
    case Family::kPlateau: device.throughput = steady(draw_plateau(random, last)); break;
    case Family::kNoisy:
      device.noise = 0.10;
      device.throughput = steady(draw_one_peak(random, last));
      break;
    case Family::kTwoPeaks: device.throughput = steady(draw_two_peaks(random, last)); break;
    case Family::kDrifting: {
      const Shape from = draw_one_peak(random, last);
      const Shape to = draw_one_peak(random, last);
      device.throughput = drift(from, to, uniform(random, 0.6, 1.4));
      break;
    }
    case Family::kStragglers:
      device.straggler_chance = uniform(random, 0.05, 0.10);
      device.throughput = steady(draw_one_peak(random, last));
      break;
    case Family::kCliff:
      device.does_not_fit = static_cast<int>(std::ceil(std::exp2(uniform(random, octaves(3), last))));
      device.throughput = steady(draw_one_peak(random, last));
      break;
  }
  return device;
}

}  // namespace

SimulatedDevice draw_device(Family family, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const int most = static_cast<int>(uniform(random, family == Family::kTwoPeaks ? 12.0 : 4.0, 33.0));
  return draw(family, random, autotuner::all_counts({1, most}));
}

SimulatedDevice draw_device(Family family, std::uint64_t seed, const std::vector<autotuner::Configuration>& space) {
  std::mt19937_64 random(seed);
  return draw(family, random, space);
}

// Pollux's formula for goodput.
double SimulatedDevice::worth(int learners, int window) const {
  const double rate = throughput(learners, window);
  if (!noise_scale) return rate;
  const double scale = noise_scale(window);
  return rate * (scale + 1.0) / (scale + learners);
}

SimulatedDevice draw_learning_device(Family family, std::uint64_t seed) {
  SimulatedDevice device = draw_device(family, seed);
  std::mt19937_64 random(seed ^ 0x6a09e667f3bcc908U);
  const double scale = std::exp2(uniform(random, -1.0, octaves(device.space.back().learners) + 2.0));
  const double growth = family == Family::kDrifting ? std::exp(uniform(random, 0.0, std::log(30.0))) : 1.0;
  device.noise_scale = [=](int window) {
    return scale * std::pow(growth, std::clamp((window - kDriftBegins) / double{kDriftEnds - kDriftBegins}, 0.0, 1.0));
  };
  device.gradient_dimensions = static_cast<int>(std::exp2(uniform(random, 4.0, 8.0)));
  return device;
}

SimulatedDevice draw_shared_device(std::uint64_t seed, int arrives, int leaves) {
  std::mt19937_64 random(seed);
  const int cores = static_cast<int>(uniform(random, 4.0, 33.0));
  const Shape shape = tent(octaves(cores), uniform(random, 0.6, 1.0), uniform(random, 0.1, 1.0));
  return {.space = autotuner::counts_of_cores({1, cores}, cores),
          .throughput =
              [=](int learners, int window) {
                const bool is_shared = window >= arrives && window < leaves && 2 * learners > cores;
                return shape(octaves(learners)) * (is_shared ? 0.5 : 1.0);
              },
          .noise = uniform(random, 0.01, 0.04)};
}

Best best_of(const SimulatedDevice& device, int window) {
  Best best;
  for (const autotuner::Configuration& count : device.space) {
    if (count.learners >= device.does_not_fit) break;
    const double worth = device.worth(count.learners, window);
    if (worth > best.throughput) best = {count.learners, worth};
  }
  return best;
}

}  // namespace arbalest::tests
