// What the tuner answers, for the run to act upon and for its log.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "autotuner/configuration.h"

namespace arbalest::autotuner {

enum class Action { kKeep, kGrow, kShrink };

// As in metrics.jsonl: "keep".
constexpr std::string_view name_of(Action action) {
  switch (action) {
    case Action::kGrow:
      return "grow";
    case Action::kShrink:
      return "shrink";
    case Action::kKeep:
      break;
  }
  return "keep";
}

// The numbers behind a decision.
struct Evidence {
  double rate = 0.0;         // examples per second at the count the decision was made at; 0 if it could not run
  int windows = 0;           // whose median that is
  double noise = 0.0;        // relative deviation of single windows
  int best_learners = 0;     // the best of the present search so far; 0 if nothing is measured
  double best_rate = 0.0;    // its examples per second
  int probes = 0;            // of the present search, with this decision's
  int probe_limit = 0;       // of every search
  int measured_windows = 0;  // all windows spent on probes since the run began, those after resizes not counted
  // None where throughput decides, or where it decides for the time being, as the noise scale is not known.
  std::optional<double> noise_scale{};      // examples
  std::optional<double> efficiency{};       // at the count the decision was made at
  std::optional<double> best_efficiency{};  // at best_learners

  std::optional<double> goodput() const { return efficiency ? std::optional(rate * *efficiency) : std::nullopt; }
  std::optional<double> best_goodput() const {
    return best_efficiency ? std::optional(best_rate * *best_efficiency) : std::nullopt;
  }
};

struct Decision {
  Action action = Action::kKeep;
  Configuration from;
  Configuration to;    // equal to `from` if kKeep
  bool done = false;   // the search ends with this; otherwise `to` is a probe
  std::string reason;  // one sentence
  Evidence evidence;
};

}  // namespace arbalest::autotuner
