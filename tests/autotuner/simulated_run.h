// Runs the real tuner on a simulated device.
#pragma once

#include <optional>
#include <vector>

#include "autotuner/tuner.h"
#include "tests/autotuner/simulated_device.h"

namespace arbalest::tests {

struct SimulatedRun {
  int chosen = 0;             // choice of the first search; 0: it did not end
  int windows_to_choice = 0;  // settling included
  double lost_windows = 0.0;  // sum over these windows of 1 - worth / best worth (SimulatedDevice::worth)
  int most_probes = 0;        // of all searches
  int failed_resizes = 0;     // resizes that ran out of memory
  std::vector<int> learners;  // by window
  std::vector<double> worth;  // by window, without noise
  std::vector<autotuner::Decision> decisions;
};

// The beginning of the first search, as for Tuner.
struct Beginning {
  std::optional<int> guess;
  autotuner::Extent extent = autotuner::Extent::kEverywhere;
};

// Simulates `windows` windows. In the two windows after a resize the throughput is only half of its later value. A
// device with a noise scale delivers a gradient sample in each of a window's four rounds, with mini-batches of 64,
// averaged over 50,000 examples. A single learner's successive gradients see only half of |G|^2.
SimulatedRun simulate(const SimulatedDevice& device, std::uint64_t seed, int windows,
                      const autotuner::TunerOptions& options = {}, const Beginning& beginning = {});

// Number of changes of the count in windows [begin, end).
int resizes(const SimulatedRun& run, int begin, int end);

// Fraction of the best worth that the run had in windows [begin, end), including slow windows after resizes.
double share_of_best(const SimulatedDevice& device, const SimulatedRun& run, int begin, int end);

}  // namespace arbalest::tests
