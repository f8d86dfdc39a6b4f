// Explains the tuner's decisions, in one sentence each, for the log.
#pragma once

#include <optional>
#include <string>

#include "autotuner/quiet_windows.h"
#include "autotuner/search.h"

namespace arbalest::autotuner {

// Explains a probe that is decided at `present`.
std::string explain_probe(const Probe& probe, const Configuration& present, const Curve& curve,
                          const Objective& objective);

// Explains a search that begins because the noise scale has moved or is now known: "the gradient noise scale has moved
// from 250 to 1900 examples". `to` must be known.
std::string explain_move(const Efficiency& from, const Efficiency& to);

struct Outcome {
  Point chosen;
  std::optional<Point> incumbent;  // the choice before this search, if it is not the first one
  Extent extent = Extent::kEverywhere;
  bool more_to_try = false;  // whether another count was still worth a probe at the end
  int probes = 0;
};

// Explains a step of a search for the size of teams: `best` is the best so far.
std::string explain_team_probe(const Point& best, const Configuration& next, const Objective& objective);
std::string explain_teams(const Point& best, bool is_changed, const SearchOptions& options);

// What follows the explanation of a choice if the machine did not become quiet: "; other programs took 30 % of ...".
std::string explain_disturbance(const QuietWindows& quiet);

std::string explain_choice(const Outcome& outcome, const Curve& curve, const SearchOptions& options);

}  // namespace arbalest::autotuner
