// What the tuner chooses among: how many learners a device trains, and on how many threads each of them computes.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace arbalest::autotuner {

struct Configuration {
  int learners = 1;  // of each device
  int threads = 1;   // of each learner; 1 on a GPU

  bool operator==(const Configuration&) const = default;
};

// Counts from the job file, cut down to what memory (by forecast) and the batches of an epoch allow.
struct Bounds {
  int min = 1;
  int max = 1;
};

// Every count from min to max, of max(1, cores / count) threads each; a GPU counts as one core. Throws
// std::invalid_argument unless 1 <= min <= max.
std::vector<Configuration> all_counts(const Bounds& bounds, int cores = 1);

// For a CPU device of `cores` cores, ascending in learners. The threads follow from the count, cores / learners, so
// that learners and threads are one choice; and of all counts with the same number of threads only the largest is
// offered, as the others leave more cores idle: 1, 2, 3, 4, 6 and 12 learners of 12 cores. Beyond the cores multiples
// of them, as a round ends with its last learner; `bounds` decides whether there are any. If the bounds leave none of
// these, all counts within them. Throws std::invalid_argument unless 1 <= min <= max and cores >= 1.
std::vector<Configuration> counts_of_cores(const Bounds& bounds, int cores);

// The counts that devices with these spaces may have alike, with the threads that the first of them gives to each.
std::vector<Configuration> common_counts(std::span<const std::vector<Configuration>> spaces);

// Of a space that is not empty, the one of the nearest count.
const Configuration& nearest(const std::vector<Configuration>& space, int learners);

// "4 learners", "1 learner of 4 threads".
std::string describe(const Configuration& configuration);

}  // namespace arbalest::autotuner
