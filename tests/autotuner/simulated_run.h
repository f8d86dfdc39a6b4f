// Runs the real tuner on a simulated device.
#pragma once

#include <optional>
#include <vector>

#include "autotuner/tuner.h"
#include "tests/autotuner/simulated_device.h"

namespace arbalest::tests {

struct SimulatedRun {
  int chosen = 0;             // choice of the first search; 0: it did not end
  int windows_to_choice = 0;  // including windows for settling
  double lost_windows = 0.0;  // sum over these windows of 1 - worth / best worth (SimulatedDevice::worth)
  int most_probes = 0;        // maximum over all searches
  int failed_resizes = 0;     // resizes that ran out of memory
  std::vector<int> learners;  // by window
  std::vector<double> worth;  // by window, without noise
  std::vector<autotuner::Decision> decisions;
};

// The guess and extent of the first search, as for Tuner.
struct Beginning {
  std::optional<int> guess;
  autotuner::Extent extent = autotuner::Extent::kEverywhere;
};

// Simulates `windows` windows. In the two windows after a resize, throughput is half of its later value. A device with
// a noise scale delivers a gradient sample in each of a window's four rounds, with mini-batches of 64. The samples are
// averaged over 50,000 examples. A single learner's successive gradients measure only half of |G|^2.
SimulatedRun simulate(const SimulatedDevice& device, std::uint64_t seed, int windows,
                      const autotuner::TunerOptions& options = {}, const Beginning& beginning = {});

// Returns how often the number of learners changes in windows [begin, end).
int resizes(const SimulatedRun& run, int begin, int end);

// Returns the run's fraction of the best worth in windows [begin, end), including slow windows after resizes.
double share_of_best(const SimulatedDevice& device, const SimulatedRun& run, int begin, int end);

}  // namespace arbalest::tests
