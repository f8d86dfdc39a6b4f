// The tuner's answers: the run acts on them and logs them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "autotuner/configuration.h"

namespace arbalest::autotuner {

enum class Action { kKeep, kGrow, kShrink };

// The action's name in metrics.jsonl: "keep".
constexpr std::string_view name_of(Action action) {
  switch (action) {
    case Action::kGrow: return "grow";
    case Action::kShrink: return "shrink";
    case Action::kKeep: break;
  }
  return "keep";
}

// The numbers behind a decision.
struct Evidence {
  double rate = 0.0;         // examples per second at the count of the decision; 0 if that count could not run
  int windows = 0;           // number of windows whose median is `rate`
  double noise = 0.0;        // relative deviation of single windows
  int best_learners = 0;     // best count of the present search so far; 0 if nothing is measured
  double best_rate = 0.0;    // examples per second at the best count
  int probes = 0;            // probes of the present search, including this decision's
  int probe_limit = 0;       // limit of probes in every search
  int measured_windows = 0;  // all windows spent on probes since the run began, without those after resizes
  // Of the present search: windows that were repeated because other programs had disturbed them, and the part of the
  // processor time that the run wanted but did not get; none if it is not known.
  int disturbed_windows = 0;
  std::optional<double> lost{};
  // These are none if throughput decides, or decides for now because the noise scale is unknown.
  std::optional<double> noise_scale{};      // examples
  std::optional<double> efficiency{};       // at the count of the decision
  std::optional<double> best_efficiency{};  // at best_learners

  std::optional<double> goodput() const { return efficiency ? std::optional(rate * *efficiency) : std::nullopt; }
  std::optional<double> best_goodput() const {
    return best_efficiency ? std::optional(best_rate * *best_efficiency) : std::nullopt;
  }
};

struct Decision {
  // Of learners or, if their number stays, of teams.
  Action action = Action::kKeep;
  Configuration from;
  Configuration to;    // equals `from` if kKeep
  bool done = false;   // true: the search ends; false: `to` is a probe
  std::string reason;  // one sentence
  Evidence evidence;
};

}  // namespace arbalest::autotuner
