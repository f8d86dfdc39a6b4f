// The tuner's choices: how many learners a device trains, on how many threads each of them computes, and how many of
// them share a stream of a GPU.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace arbalest::autotuner {

struct Configuration {
  int learners = 1;  // per device
  int threads = 1;   // per learner; 1 on a GPU
  int team = 1;      // learners that train together on one stream, a divisor of `learners`; 1 on a CPU

  bool operator==(const Configuration&) const = default;
};

// Bounds from the job file, reduced to what memory (by estimate) and the batches of an epoch allow.
struct Bounds {
  int min = 1;
  int max = 1;
};

// Returns every count from min to max, with max(1, cores / count) threads each; a GPU counts as one core. Throws
// std::invalid_argument unless 1 <= min <= max.
std::vector<Configuration> all_counts(const Bounds& bounds, int cores = 1);

// Returns the counts worth trying on a CPU device of `cores` cores, ascending in learners. Threads follow from the
// count (cores / learners), so learners and threads are one choice. Of all counts with equal threads only the largest
// is returned, because the others leave more cores idle: 1, 2, 3, 4, 6 and 12 learners for 12 cores. Above the number
// of cores only its multiples are returned, because a round ends with its last learner; `bounds` may exclude them. If
// no such count is within the bounds, returns all counts within them. Throws std::invalid_argument unless 1 <= min <=
// max and cores >= 1.
std::vector<Configuration> counts_of_cores(const Bounds& bounds, int cores);

// Returns the counts that are in the spaces of all devices, with the first space's threads.
std::vector<Configuration> common_counts(std::span<const std::vector<Configuration>> spaces);

// Returns the configurations whose learners can be divided into teams of this size, in such teams.
std::vector<Configuration> in_teams(std::vector<Configuration> space, int team);

// Returns the configuration with the nearest count. The space must not be empty.
const Configuration& nearest(const std::vector<Configuration>& space, int learners);

// "4 learners", "1 learner of 4 threads", "4 learners in teams of 2".
std::string describe(const Configuration& configuration);

}  // namespace arbalest::autotuner
