#include "autotuner/explanation.h"

#include <fmt/format.h>

namespace arbalest::autotuner {

namespace {

// "500 examples/s", "500 examples/s of efficiency 0.80 (goodput 400)"
std::string speed(const Point& point, const Objective& objective) {
  const std::string rate = fmt::format("{:.0f} examples/s", point.rate);
  if (!objective.weighs()) return rate;
  return fmt::format("{} of efficiency {:.2f} (goodput {:.0f})", rate, objective.efficiency(point.configuration),
                     objective.goodput(point.configuration, point.rate));
}

// The number by which counts are compared.
double goodput(const Point& point, const Objective& objective) {
  return objective.goodput(point.configuration, point.rate);
}

const char* better(const Objective& objective) { return objective.weighs() ? "better" : "faster"; }

// "4 learners are slower", "4 learners are hardly faster": a point compared with one that it does not clearly beat.
std::string compared(const Point& point, const Point& with, const Objective& objective) {
  const bool is_lower = goodput(point, objective) < goodput(with, objective);
  const char* lower = objective.weighs() ? "worse" : "slower";
  return fmt::format("{} are {}", describe(point.configuration),
                     is_lower ? lower : fmt::format("hardly {}", better(objective)));
}

std::string reached(const Point& point, const Objective& objective) {
  return fmt::format("{} reached {}", describe(point.configuration), speed(point, objective));
}

std::string findings(const Configuration& present, const Curve& curve, const Objective& objective) {
  const Point* here = curve.find(present.learners);
  if (here == nullptr) {
    return curve.empty() ? "nothing is measured yet" : reached(curve.best(objective), objective) + ", the most so far";
  }
  const Point& best = curve.best(objective);
  if (curve.points().size() == 1) return reached(*here, objective);
  if (here == &best) return reached(*here, objective) + ", the most so far";
  return fmt::format("{}, {} {:.0f}", reached(*here, objective), describe(best.configuration),
                     goodput(best, objective));
}

std::string why(const Probe& probe, const Curve& curve, const Objective& objective) {
  const std::string next = describe(probe.configuration);
  switch (probe.kind) {
    case ProbeKind::kAbove: return fmt::format("trying the next octave, {}", next);
    case ProbeKind::kBelow: return fmt::format("trying {}, the octave below all so far", next);
    case ProbeKind::kLowest:
      return fmt::format("{} than {}, so trying {}", compared(curve.points()[1], curve.points()[0], objective),
                         describe(curve.points()[0].configuration), next);
    case ProbeKind::kBeside: return fmt::format("comparing with {}, about an octave away", next);
    case ProbeKind::kBetween: break;
  }
  return fmt::format("a count between may be up to {:.0f} % {} than the best, trying {}",
                     100.0 * (probe.promise / goodput(curve.best(objective), objective) - 1.0), better(objective),
                     next);
}

}  // namespace

std::string explain_probe(const Probe& probe, const Configuration& present, const Curve& curve,
                          const Objective& objective) {
  return fmt::format("{}: {}", findings(present, curve, objective), why(probe, curve, objective));
}

std::string explain_move(const Efficiency& from, const Efficiency& to) {
  const std::string scale = fmt::format("{}{:.0f} examples", to.is_bound() ? "at least " : "", *to.noise_scale());
  if (!from.is_known()) return fmt::format("the gradient noise scale is now known: {}", scale);
  return fmt::format("the gradient noise scale has moved from {:.0f} to {}", *from.noise_scale(), scale);
}

namespace {

std::string explain_outcome(const Outcome& outcome, const Curve& curve, const SearchOptions& options) {
  const Objective& objective = options.objective;
  const Point& best = curve.best(objective);
  const bool is_best = outcome.chosen.configuration == best.configuration;
  const double hysteresis = 100.0 * options.hysteresis;
  if (outcome.incumbent && outcome.chosen.configuration == outcome.incumbent->configuration) {
    if (is_best) return fmt::format("{}, and no neighboring count reached more: no change", reached(best, objective));
    return fmt::format("{}, {} {:.0f}, which is not surely {:.0f} % more: no change",
                       reached(outcome.chosen, objective), describe(best.configuration), goodput(best, objective),
                       hysteresis);
  }
  if (!is_best) {
    return fmt::format("{}, within {:.0f} % of the {:.0f} of {}: the fewer learners are chosen",
                       reached(outcome.chosen, objective), hysteresis, goodput(best, objective),
                       describe(best.configuration));
  }
  const std::string end = outcome.more_to_try ? fmt::format("the limit of {} probes is reached", outcome.probes)
                                              : fmt::format(
                                                    "no other{} should be more than {:.0f} % {}, by rates known to "
                                                    "{:.1f} %",
                                                    outcome.extent == Extent::kAround ? " beside it" : "",
                                                    100.0 * options.tolerance, better(objective), 100.0 * best.error);
  return fmt::format("{}, the most of all that were tried, and {}", reached(best, objective), end);
}

}  // namespace

std::string explain_disturbance(const QuietWindows& quiet) {
  if (quiet.is_quiet()) return "";
  return fmt::format(
      "; but the machine was busy: other programs took {:.0f} % of the processor time that the run wanted, so this "
      "result holds only under that load",
      100.0 * quiet.all().lost_share());
}

std::string explain_team_probe(const Point& best, const Configuration& next, const Objective& objective) {
  return fmt::format("{}, the most so far: trying {}", reached(best, objective), describe(next));
}

std::string explain_teams(const Point& best, bool is_changed, const SearchOptions& options) {
  const Objective& objective = options.objective;
  if (is_changed) return fmt::format("{}, the most of all sizes of teams that were tried", reached(best, objective));
  return fmt::format("{}, and no other size of teams surely {:.0f} % more: no change", reached(best, objective),
                     100.0 * options.hysteresis);
}

std::string explain_choice(const Outcome& outcome, const Curve& curve, const SearchOptions& options) {
  const Objective& objective = options.objective;
  const char* unknown = "; the gradient noise scale is not known yet, so examples/s decide";
  return explain_outcome(outcome, curve, options) + (objective.is_goodput() && !objective.weighs() ? unknown : "");
}

}  // namespace arbalest::autotuner
