#include "autotuner/configuration.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

namespace arbalest::autotuner {

namespace {

void require_sound(const Bounds& bounds) {
  if (bounds.min < 1 || bounds.max < bounds.min) {
    throw std::invalid_argument(fmt::format("no learner count is between {} and {}", bounds.min, bounds.max));
  }
}

}  // namespace

std::vector<Configuration> all_counts(const Bounds& bounds, int cores) {
  require_sound(bounds);
  std::vector<Configuration> space;
  for (int learners = bounds.min; learners <= bounds.max; ++learners) {
    space.push_back({learners, std::max(1, cores / learners)});
  }
  return space;
}

std::vector<Configuration> counts_of_cores(const Bounds& bounds, int cores) {
  require_sound(bounds);
  if (cores < 1) throw std::invalid_argument(fmt::format("a device of {} cores", cores));
  std::vector<Configuration> space;
  for (int learners = bounds.min; learners <= bounds.max; ++learners) {
    const int threads = std::max(1, cores / learners);
    const bool uses_most = learners < cores ? cores / threads == learners : learners % cores == 0;
    if (uses_most) space.push_back({learners, threads});
  }
  return space.empty() ? all_counts(bounds, cores) : space;
}

std::vector<Configuration> common_counts(std::span<const std::vector<Configuration>> spaces) {
  std::vector<Configuration> common = spaces.front();
  for (const std::vector<Configuration>& space : spaces) {
    std::erase_if(common, [&](const Configuration& c) {
      return std::ranges::find(space, c.learners, &Configuration::learners) == space.end();
    });
  }
  return common;
}

std::vector<Configuration> in_teams(std::vector<Configuration> space, int team) {
  std::erase_if(space, [&](const Configuration& c) { return c.learners % team != 0; });
  for (Configuration& c : space) c.team = team;
  return space;
}

const Configuration& nearest(const std::vector<Configuration>& space, int learners) {
  return *std::ranges::min_element(space, {}, [&](const Configuration& c) { return std::abs(c.learners - learners); });
}

std::string describe(const Configuration& configuration) {
  const char* plural = configuration.learners == 1 ? "" : "s";
  if (configuration.team > 1)
    return fmt::format("{} learners in teams of {}", configuration.learners, configuration.team);
  if (configuration.threads == 1) return fmt::format("{} learner{}", configuration.learners, plural);
  return fmt::format("{} learner{} of {} threads", configuration.learners, plural, configuration.threads);
}

}  // namespace arbalest::autotuner
