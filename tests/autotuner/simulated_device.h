// Simulated devices for tests of the tuner. A device is a curve of throughput over learners with measurement noise, and
// everything is drawn from a seed.
//
// x is log2 of the number of learners, and s is the largest x of the space. Throughputs are relative. Adding learners
// never makes each of them faster, so no curve rises by more than one octave of throughput per octave of learners.
//   law        universal scalability law (Gunther): n / (1 + a (n - 1) + b n (n - 1)), a in [0, 0.3], b such that the
//              peak is at an x uniform in [0, s + 0.3]
//   tent       rises with slope [0.3, 1] to a peak at an x uniform in [0, s], falls with slope [0.05, 1]
//   plateau    rises with slope [0.4, 1] to a knee at an x uniform in [0, s], falls with slope [0, 0.03] from there
//   two peaks  two tents, slopes in [0.2, 1], the first peak at [0, s / 2], down to the valley and up to the second 0.5
//              to 1.5 octaves each, but so far that each peak is at least one octave wide halfway down to the valley
#pragma once

#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "autotuner/configuration.h"

namespace arbalest::tests {

// Returns the throughput of a number of learners at a time, given in windows since the beginning.
using ThroughputCurve = std::function<double(int learners, int window)>;

struct SimulatedDevice {
  std::vector<autotuner::Configuration> space;
  ThroughputCurve throughput = {};
  double noise = 0.0;                                  // relative deviation of a window's rate, normally distributed
  double straggler_chance = 0.0;                       // chance per window that a burst of slow windows begins
  int does_not_fit = std::numeric_limits<int>::max();  // from this number of learners on, memory runs out
  // B_noise in mini-batches of one learner, at a time in windows. Empty: only throughput counts.
  std::function<double(int window)> noise_scale = {};
  int gradient_dimensions = 64;  // fewer dimensions make the gradients' estimate noisier

  // Returns the goodput of a number of learners, or its throughput if there is no noise scale.
  double worth(int learners, int window) const;
};

enum class Family { kUnimodal, kPlateau, kNoisy, kTwoPeaks, kDrifting, kStragglers, kCliff };

inline constexpr Family kFamilies[] = {Family::kUnimodal, Family::kPlateau,    Family::kNoisy, Family::kTwoPeaks,
                                       Family::kDrifting, Family::kStragglers, Family::kCliff};
std::string name_of(Family family);

// Windows in which the curve of kDrifting starts and stops changing into another.
inline constexpr int kDriftBegins = 300;
inline constexpr int kDriftEnds = 900;

// Draws a device. The last count is uniform in [4, 32], or [12, 32] with two peaks. Noise is uniform in [1 %, 4 %], but
//   unimodal    law or tent
//   plateau     plateau
//   noisy       any of these with 10 % noise
//   two peaks   two peaks
//   drifting    one of law, tent, plateau turns into another, whose level is 0.6 to 1.4 times its own, geometrically
//   stragglers  law, tent or plateau; in each window, with a chance of 5 % to 10 %, a burst of 1 to 3 windows begins,
//               which have 0.2 to 0.7 of the throughput
//   cliff       law, tent or plateau; counts from an x uniform in [log2 3, s] on do not fit in memory, which the
//               estimate did not predict
SimulatedDevice draw_device(Family family, std::uint64_t seed);
// Draws a device with these counts.
SimulatedDevice draw_device(Family family, std::uint64_t seed, const std::vector<autotuner::Configuration>& space);

// Draws a device. From window `arrives` to window `leaves` another program takes half of the cores: the throughput of
// more learners than half the cores is halved.
SimulatedDevice draw_shared_device(std::uint64_t seed, int arrives, int leaves);

// Draws a device of the family with gradients of 16 to 256 dimensions. Their noise scale is 2^y mini-batches, with y
// uniform in [-1, s + 2]. The noise scale of a drifting device grows by a factor of 1 to 30 during the drift.
SimulatedDevice draw_learning_device(Family family, std::uint64_t seed);

// The best number of learners at a time, and its throughput or goodput.
struct Best {
  int learners = 0;
  double throughput = 0.0;  // or goodput
};
Best best_of(const SimulatedDevice& device, int window);

double uniform(std::mt19937_64& random, double low, double high);

}  // namespace arbalest::tests
