#include "autotuner/comparison.h"

#include <algorithm>
#include <cstddef>

namespace arbalest::autotuner {

namespace {

std::vector<double> rates_of(std::span<const Window> windows) {
  std::vector<double> rates;
  for (const Window& window : windows) rates.push_back(window.rate);
  return rates;
}

std::vector<double> processor_rates_of(std::span<const Window> windows) {
  std::vector<double> rates;
  for (const Window& window : windows) {
    if (const auto rate = window.per_processor_second()) rates.push_back(*rate);
  }
  return rates;
}

double error_of(const std::vector<double>& rates) {
  return median_error(NoiseEstimate().with(rates), static_cast<int>(rates.size()));
}

}  // namespace

Comparison::Comparison(const ComparisonOptions& options, std::vector<std::vector<Window>> known)
    : options_(options), quiet_(options.quiet) {
  const std::ptrdiff_t most = std::ptrdiff_t{options.fewest_turns} * options.windows_per_turn;
  for (const std::vector<Window>& windows : known) {
    candidates_.push_back({{windows.end() - std::min(most, std::ssize(windows)), windows.end()}});
  }
}

Measured Comparison::measure(const Candidate& candidate) const {
  const std::vector<double> rates = rates_of(candidate.windows);
  Measured measured{.rate = median(rates), .error = error_of(rates), .windows = static_cast<int>(rates.size())};
  for (const Window& window : candidate.windows) measured.processor.add(window.processor);
  if (const std::vector<double> of_processor = processor_rates_of(candidate.windows); !of_processor.empty()) {
    measured.per_processor_second = median(of_processor);
    measured.processor_error = error_of(of_processor);
  }
  return measured;
}

std::optional<Measured> Comparison::measured(std::size_t candidate) const {
  if (candidates_[candidate].windows.empty()) return std::nullopt;
  return measure(candidates_[candidate]);
}

bool Comparison::is_far_behind(const Candidate& candidate) const {
  double best = 0.0;
  for (const Candidate& other : candidates_) {
    if (!other.windows.empty()) best = std::max(best, measure(other).rate);
  }
  const Measured measured = measure(candidate);
  return measured.rate * (1.0 + 3.0 * measured.error) < best * (1.0 - options_.far_behind);
}

bool Comparison::is_done(const Candidate& candidate) const {
  if (candidate.is_dropped) return true;
  if (candidate.turns < options_.fewest_turns) return false;
  if (std::ssize(candidate.windows) >= options_.most_windows) return true;
  return measure(candidate).error <= options_.precision || is_far_behind(candidate);
}

std::optional<std::size_t> Comparison::next() {
  if (std::ranges::all_of(candidates_, [&](const Candidate& candidate) { return is_done(candidate); })) {
    return std::nullopt;
  }
  while (at_ < candidates_.size() && is_done(candidates_[at_])) ++at_;
  if (at_ == candidates_.size()) {
    at_ = 0;
    ++turn_;
    while (is_done(candidates_[at_])) ++at_;
  }
  windows_in_turn_ = 0;
  quiet_.begin_measurement();
  return at_;
}

bool Comparison::add(const Window& window) {
  if (!quiet_.counts(window)) return false;
  Candidate& candidate = candidates_[at_];
  candidate.windows.push_back(window);
  if (++windows_in_turn_ < options_.windows_per_turn) return false;
  ++candidate.turns;
  ++at_;
  return true;
}

double Comparison::largest_error() const {
  double largest = 0.0;
  for (const Candidate& candidate : candidates_) {
    if (candidate.is_dropped) continue;
    if (candidate.windows.empty()) return 1.0;
    if (!is_far_behind(candidate)) largest = std::max(largest, measure(candidate).error);
  }
  return largest;
}

std::size_t choose(std::span<const Contender> contenders, double hysteresis) {
  const Contender& best = *std::ranges::max_element(contenders, {}, &Contender::worth);
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const double error = combined_error(contenders[i].error, best.error);
    if (&contenders[i] == &best || contenders[i].worth >= best.worth * (1.0 - hysteresis + error)) return i;
  }
  return static_cast<std::size_t>(&best - contenders.data());
}

Shortfall shortfall(std::span<const Contender> contenders, std::size_t chosen) {
  const auto best = std::ranges::max_element(contenders, {}, &Contender::worth);
  const Contender& of = contenders[chosen];
  const double ratio = of.worth / best->worth;
  if (&*best != &of) return {1.0 - ratio, ratio * combined_error(of.error, best->error)};
  // The best of all, as far as the errors tell: the closest rival may be better by their error.
  double error = 0.0;
  for (const Contender& other : contenders) {
    if (&other == &of) continue;
    const double of_ratio = combined_error(of.error, other.error);
    error = std::max(error, of_ratio - 0.5 * (1.0 - other.worth / of.worth));
  }
  return {0.0, error};
}

}  // namespace arbalest::autotuner
