// A run on a simulated device, tuned by the real tuner.
#pragma once

#include <optional>
#include <vector>

#include "autotuner/tuner.h"
#include "tests/autotuner/simulated_device.h"

namespace arbalest::tests {

struct SimulatedRun {
  int chosen = 0;             // by the first search; 0: it did not end
  int windows_to_choice = 0;  // settling included
  double lost_windows = 0.0;  // sum over them of 1 - worth / best worth (SimulatedDevice::worth)
  int most_probes = 0;        // of any search
  int failed_resizes = 0;     // out of memory
  std::vector<int> learners;  // by window
  std::vector<double> worth;  // by window, without noise
  std::vector<autotuner::Decision> decisions;
};

// How the first search begins, as for Tuner.
struct Beginning {
  std::optional<int> guess;
  autotuner::Extent extent = autotuner::Extent::kEverywhere;
};

// Plays `windows` windows. While two windows pass after a resize the throughput is only half of what it will be. A
// device with a noise scale delivers a gradient sample in each of a window's four rounds, with mini-batches of 64 that
// are averaged over 50,000 examples; one learner's successive gradients see only half of |G|^2.
SimulatedRun simulate(const SimulatedDevice& device, std::uint64_t seed, int windows,
                      const autotuner::TunerOptions& options = {}, const Beginning& beginning = {});

// Changes of the count in windows [begin, end).
int resizes(const SimulatedRun& run, int begin, int end);

// Share of the best worth that the run had in windows [begin, end), slow windows after resizes included.
double share_of_best(const SimulatedDevice& device, const SimulatedRun& run, int begin, int end);

}  // namespace arbalest::tests
