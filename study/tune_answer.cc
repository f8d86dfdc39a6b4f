#include "study/tune_answer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autotuner/comparison.h"
#include "messages/text.h"

namespace arbalest::jobs {

namespace {

using autotuner::Contender;

constexpr double kHysteresis = 0.03;

bool decides_by_processor_time(const TuneResult& result, const std::vector<TunePoint>& points) {
  return !result.machine.was_quiet && std::ranges::all_of(points, [](const TunePoint& point) {
    return point.images_per_processor_second.has_value();
  });
}

// One learner of one thread, if its processor time is known; else null.
const TunePoint* one_thread(const TuneResult& result) {
  for (const TunePoint& point : result.fewer_threads) {
    if (std::ranges::max(point.threads) == 1 && point.images_per_processor_second) return &point;
  }
  return nullptr;
}

// Images per second of processor time, without the time that threads used in vain; none if that cannot be told. The
// threads of a learner compute each layer together. While one of them waits for a core, the others spin until it is
// there, for a part of the time that differs from window to window.
std::optional<double> useful_rate(const TunePoint& point) {
  const bool lost_nothing = point.lost.value_or(0.0) == 0.0;
  const bool has_one_thread = std::ranges::max(point.threads) == 1;
  return has_one_thread || lost_nothing ? point.images_per_processor_second : std::nullopt;
}

// What points are compared by.
Contender contender(const TunePoint& point, bool by_processor_time) {
  if (!by_processor_time) return {point.goodput(), point.error};
  return {*point.images_per_processor_second * point.cores * point.efficiency.value_or(1.0), point.processor_error};
}

// How many times as fast as the baseline the chosen point is; none if that cannot be told.
std::optional<TuneGain> gain_of(const TunePoint& chosen, const TuneResult& result, bool by_processor_time) {
  if (!result.baseline || (!result.machine.was_quiet && !by_processor_time)) return std::nullopt;
  const TunePoint& one = *result.baseline;
  if (one.learners == chosen.learners) return TuneGain{1.0, 0.0, by_processor_time};
  bool is_lower_bound = false;
  Contender a = contender(chosen, false);
  Contender b = contender(one, false);
  if (by_processor_time) {
    if (!one.images_per_processor_second) return std::nullopt;
    const TunePoint* thread = one_thread(result);
    const std::optional<double> of_chosen = useful_rate(chosen);
    std::optional<double> of_one = useful_rate(one);
    is_lower_bound = !of_one && thread != nullptr;
    if (is_lower_bound) of_one = thread->images_per_processor_second;
    if (!of_chosen || !of_one) return std::nullopt;
    a = {*of_chosen * chosen.cores * chosen.efficiency.value_or(1.0), chosen.processor_error};
    b = {*of_one * one.cores * one.efficiency.value_or(1.0),
         is_lower_bound ? thread->processor_error : one.processor_error};
  }
  const double ratio = a.worth / b.worth;
  return TuneGain{ratio, ratio * autotuner::combined_error(a.error, b.error), by_processor_time, is_lower_bound};
}

// "2 learners", "3, 6 learners"
std::string name_of(const TunePoint& point) {
  const std::vector<int>& counts = point.learners;
  if (std::ranges::adjacent_find(counts, std::ranges::not_equal_to()) == counts.end()) {
    return counted(counts.front(), "learner");
  }
  return fmt::format("{} learners", fmt::join(counts, ", "));
}

std::string speed_of(const TunePoint& point) {
  if (!point.efficiency) return fmt::format("{:.0f} examples/s", point.images_per_second);
  return fmt::format("{:.0f} examples/s of efficiency {:.2f} (goodput {:.0f})", point.images_per_second,
                     *point.efficiency, point.goodput());
}

std::string gain_text(const std::optional<TuneGain>& gain) {
  if (!gain) return "";
  return fmt::format("; {:.2f} (standard error {:.2f}) times as fast as one learner", gain->ratio, gain->error);
}

std::string quiet_reason(const TuneResult& result, const TunePoint& chosen, const TunePoint& best) {
  const std::string reached =
      fmt::format("{} reached {} to within {:.1f} %", name_of(chosen), speed_of(chosen), 100.0 * chosen.error);
  std::string reason;
  if (chosen.learners == best.learners) {
    reason = reached + ", the most of all that were measured";
  } else {
    reason = fmt::format("{}, within {:.0f} % of the {:.0f} of {}: the fewer learners are chosen", reached,
                         100.0 * kHysteresis, best.goodput(), name_of(best));
  }
  return reason + gain_text(result.gain);
}

std::string busy_reason(const TuneResult& result, const TunePoint& chosen) {
  std::string reason =
      fmt::format("the machine was busy: other programs took {:.0f} % of the processor time that the learners wanted",
                  100.0 * result.machine.lost);
  if (!chosen.images_per_processor_second) return reason;
  reason +=
      fmt::format(", so examples per processor second decide: {}{} with {}",
                  grouped(std::llround(*chosen.images_per_processor_second)),
                  chosen.efficiency ? fmt::format(" of efficiency {:.2f}", *chosen.efficiency) : "", name_of(chosen));
  if (!result.gain) return reason + "; they took too much for a comparison with one learner";
  return reason + fmt::format("; by processor time that is {}{:.2f} (standard error {:.2f}) times one learner",
                              result.gain->is_lower_bound ? "at least " : "", result.gain->ratio, result.gain->error);
}

}  // namespace

std::optional<double> regret_of(const TuneResult& result) {
  const auto chosen = std::ranges::find(result.sweep, result.chosen, &TunePoint::learners);
  if (chosen == result.sweep.end()) return std::nullopt;
  const auto best = std::ranges::max_element(result.sweep, {}, &TunePoint::goodput);
  return 1.0 - chosen->goodput() / best->goodput();
}

bool may_be_remembered(const TuneResult& result) {
  return result.machine.was_quiet || (result.points.size() == 1 && result.sweep.size() <= 1);
}

void answer(TuneResult& result) {
  const std::vector<TunePoint>& points = result.sweep.empty() ? result.points : result.sweep;
  const bool by_processor_time = decides_by_processor_time(result, points);
  std::vector<Contender> contenders;
  for (const TunePoint& point : points) contenders.push_back(contender(point, by_processor_time));
  const std::size_t at = autotuner::choose(contenders, kHysteresis);
  const TunePoint& chosen = points[at];
  result.chosen = chosen.learners;
  result.images_per_second = chosen.images_per_second;
  result.gain = gain_of(chosen, result, by_processor_time);
  if (!result.sweep.empty()) {
    std::vector<Contender> by_clock;
    for (const TunePoint& point : points) by_clock.push_back(contender(point, false));
    result.regret = regret_of(result);
    result.regret_error = autotuner::shortfall(by_clock, at).error;
  }
  if (result.machine.was_quiet) {
    const auto best = std::ranges::max_element(contenders, {}, &Contender::worth) - contenders.begin();
    result.reason = quiet_reason(result, chosen, points[static_cast<std::size_t>(best)]);
  } else {
    result.reason = busy_reason(result, chosen);
  }
  if (result.objective == TuningObjective::kGoodput && !chosen.efficiency) {
    result.reason += "; the gradient noise scale is not known yet, so examples/s decide";
  }
}

}  // namespace arbalest::jobs
