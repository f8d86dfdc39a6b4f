#include "autotuner/explanation.h"

#include <fmt/format.h>

namespace arbalest::autotuner {

namespace {

std::string reached(const Point& point) {
  return fmt::format("{} reached {:.0f} examples/s", describe(point.configuration), point.rate);
}

std::string findings(const Configuration& present, const Curve& curve) {
  const Point* here = curve.find(present.learners);
  if (here == nullptr) return curve.empty() ? "nothing is measured yet" : reached(curve.best()) + ", the most so far";
  const Point& best = curve.best();
  if (curve.points().size() == 1) return reached(*here);
  if (here == &best) return reached(*here) + ", the most so far";
  return fmt::format("{}, {} {:.0f}", reached(*here), describe(best.configuration), best.rate);
}

std::string why(const Probe& probe, const Curve& curve) {
  const std::string next = describe(probe.configuration);
  switch (probe.kind) {
    case ProbeKind::kAbove:
      return fmt::format("trying the next octave, {}", next);
    case ProbeKind::kBelow:
      return fmt::format("trying {}, the octave below all so far", next);
    case ProbeKind::kLowest:
      return fmt::format("{} are hardly faster than {}, so trying {}", describe(curve.points()[1].configuration),
                         describe(curve.points()[0].configuration), next);
    case ProbeKind::kBeside:
      return fmt::format("comparing with {}, about an octave aside", next);
    case ProbeKind::kBetween:
      break;
  }
  return fmt::format("a count between may be up to {:.0f} % faster than the best, trying {}",
                     100.0 * (probe.promise / curve.best().rate - 1.0), next);
}

}  // namespace

std::string explain_probe(const Probe& probe, const Configuration& present, const Curve& curve) {
  return fmt::format("{}: {}", findings(present, curve), why(probe, curve));
}

std::string explain_choice(const Outcome& outcome, const Curve& curve, const SearchOptions& options) {
  const Point& best = curve.best();
  const bool is_best = outcome.chosen.configuration == best.configuration;
  const double hysteresis = 100.0 * options.hysteresis;
  if (outcome.incumbent && outcome.chosen.configuration == outcome.incumbent->configuration) {
    if (is_best) return fmt::format("{}, no count beside it more: no change", reached(best));
    return fmt::format("{}, {} {:.0f}, which is not surely {:.0f} % more: no change", reached(outcome.chosen),
                       describe(best.configuration), best.rate, hysteresis);
  }
  if (!is_best) {
    return fmt::format("{}, within {:.0f} % of the {:.0f} of {}: the fewer learners are chosen",
                       reached(outcome.chosen), hysteresis, best.rate, describe(best.configuration));
  }
  const std::string end = outcome.more_to_try ? fmt::format("the limit of {} probes is reached", outcome.probes)
                                              : fmt::format("no other{} can be more than {:.0f} % faster",
                                                            outcome.extent == Extent::kAround ? " beside it" : "",
                                                            100.0 * options.tolerance);
  return fmt::format("{}, the most of all that were tried, and {}", reached(best), end);
}

}  // namespace arbalest::autotuner
