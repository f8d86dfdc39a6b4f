#include "autotuner/team_search.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "autotuner/explanation.h"

namespace arbalest::autotuner {

TeamSearch::TeamSearch(const TunerOptions& options, const TeamLimits& limits, const Point& start)
    : options_(options),
      limits_(limits),
      start_(start.configuration),
      best_(start),
      present_(start_),
      before_(start_),
      tried_{start_},
      measured_(start) {}

std::optional<Configuration> TeamSearch::next() const {
  if (std::ssize(tried_) > kMostProbes) return std::nullopt;
  const auto& [learners, threads, team] = best_.configuration;
  std::vector<Configuration> beside;
  if (learners % (2 * team) == 0) beside.push_back({learners, threads, 2 * team});
  beside.push_back({2 * learners, threads, 2 * team});
  if (team % 2 == 0 && !has_changed()) beside.push_back({learners, threads, team / 2});
  for (const Configuration& each : beside) {
    const bool is_possible =
        each.learners <= limits_.most_learners && each.learners + present_.learners <= limits_.most_at_once;
    if (is_possible && std::ranges::find(tried_, each) == tried_.end()) return each;
  }
  return std::nullopt;
}

bool TeamSearch::is_better(const Point& point) const {
  const SearchOptions& search = options_.search;
  const auto goodput = [&](const Point& p) { return search.objective.goodput(p.configuration, p.rate); };
  return goodput(point) * (1.0 - error_between(point, best_, search)) > goodput(best_) * (1.0 + search.hysteresis);
}

Decision TeamSearch::begin() { return step(""); }

std::optional<Decision> TeamSearch::add(std::int64_t tasks, std::int64_t examples, double seconds,
                                        const ProcessorUse& processor) {
  const std::optional<Decision> measured = probe_ ? probe_->add(tasks, examples, seconds, processor) : std::nullopt;
  if (!measured) return std::nullopt;
  noise_ = measured->evidence.noise;
  measured_ = probe_->curve().points().front();
  measured_windows_ += probe_->measured_windows();
  is_quiet_ = is_quiet_ && probe_->quiet().is_quiet();
  if (is_better(measured_)) best_ = measured_;
  return step("");
}

Decision TeamSearch::out_of_memory() {
  const Configuration failed = std::exchange(present_, before_);
  const std::string cause = fmt::format("{} do not fit in memory: ", describe(failed));
  if (!has_ended_) return step(cause);
  best_ = measured_;  // the configuration that trains
  return go(present_, true, fmt::format("{}staying with {}", cause, describe(present_)));
}

Decision TeamSearch::step(const std::string& cause) {
  const std::optional<Configuration> to = next();
  if (!to) {
    has_ended_ = true;
    probe_.reset();
    return go(best_.configuration, true, cause + explain_teams(best_, has_changed(), options_.search));
  }
  tried_.push_back(*to);
  probe_.emplace(options_, std::vector{*to});
  return go(*to, false, cause + explain_team_probe(best_, *to, options_.search.objective));
}

Decision TeamSearch::go(const Configuration& to, bool done, std::string reason) {
  const Objective& objective = options_.search.objective;
  Decision decision{.from = present_,
                    .to = to,
                    .done = done,
                    .reason = std::move(reason),
                    .evidence = {.rate = measured_.rate,
                                 .windows = measured_.windows,
                                 .noise = noise_,
                                 .best_learners = best_.configuration.learners,
                                 .best_rate = best_.rate,
                                 .probes = static_cast<int>(std::ssize(tried_)) - 1,
                                 .probe_limit = kMostProbes,
                                 .measured_windows = measured_windows_}};
  decision.evidence.noise_scale = objective.known().noise_scale();
  if (objective.weighs()) {
    decision.evidence.efficiency = objective.efficiency(measured_.configuration);
    decision.evidence.best_efficiency = objective.efficiency(best_.configuration);
  }
  const auto size = [](const Configuration& c) { return std::pair(c.learners, c.team); };
  if (size(to) > size(present_)) decision.action = Action::kGrow;
  if (size(to) < size(present_)) decision.action = Action::kShrink;
  before_ = std::exchange(present_, to);
  return decision;
}

}  // namespace arbalest::autotuner
