#include "autotuner/tuner.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "autotuner/explanation.h"

namespace arbalest::autotuner {

namespace {

constexpr int kFirstLook = 500;
constexpr int kLastLook = 4000;
constexpr int kFirstLookBack = 200;
constexpr int kLastLookBack = 400;
constexpr int kFirstPatience = Watch::kBaselineWindows;
constexpr int kLastPatience = 800;
constexpr double kLargeMove = 4.0 / 3.0;      // upwards, or by the same factor downwards
constexpr int kPatienceWithSmallMoves = 300;  // three resizes per search: one per 100 windows
constexpr int kCalibrationWindows = 9;

// Returns false if so many windows are far from the median that it may be the median of a burst of stragglers.
bool agree(std::span<const double> rates, double noise) {
  const double center = median({rates.begin(), rates.end()});
  const auto far = std::ranges::count_if(
      rates, [&](double rate) { return std::abs(rate / center - 1.0) > std::max(0.05, 4.0 * noise); });
  return 4 * far <= std::ssize(rates);
}

}  // namespace

Tuner::Tuner(const TunerOptions& options, std::vector<Configuration> space, std::optional<int> guess, Extent extent)
    : options_(options),
      space_(std::move(space)),
      meter_(options.window),
      extent_(extent),
      quiet_(options.quiet),
      next_look_(kFirstLook),
      next_look_back_(kFirstLookBack),
      patience_(kFirstPatience) {
  const auto not_ascending = [](const Configuration& a, const Configuration& b) { return a.learners >= b.learners; };
  if (space_.empty() || space_.front().learners < 1 ||
      std::ranges::adjacent_find(space_, not_ascending) != space_.end()) {
    throw std::invalid_argument("the counts to choose from must be positive and ascending");
  }
  octaves_ = guess ? octaves_of(space_, nearest(space_, *guess)) : octaves_of(space_);
  first_ = guess ? nearest(space_, *guess) : octaves_[octaves_.size() > 1 ? 1 : 0];
  present_ = last_good_ = first_;
  probes_ = 1;
  settle();
}

void Tuner::settle() { meter_.restart(options_.devices * present_.learners + options_.other_learners); }

std::optional<Decision> Tuner::add(std::int64_t tasks, std::int64_t examples, double seconds,
                                   const ProcessorUse& processor) {
  const std::optional<Window> window = meter_.add(tasks, examples, seconds, processor);
  if (!window) return std::nullopt;
  if (watch_) ++windows_since_choice_;
  switch (state_) {
    case State::kProbing: return probe(*window);
    case State::kReturning: return next();
    case State::kWatching: break;
  }
  return passes_over(*window) ? std::nullopt : watch(window->rate);
}

bool Tuner::passes_over(const Window& window) {
  const bool is_disturbed = window.processor.is_known() && window.processor.lost_share() > options_.quiet.most_lost;
  disturbed_in_a_row_ = is_disturbed ? disturbed_in_a_row_ + 1 : 0;
  return is_disturbed && disturbed_in_a_row_ <= options_.quiet.most_repeats;
}

void Tuner::set_efficiency(const Efficiency& efficiency) {
  options_.search.objective = Objective(efficiency, options_.devices, options_.other_learners);
}

std::optional<Decision> Tuner::probe(const Window& window) {
  if (!quiet_.counts(window)) return std::nullopt;
  rates_.push_back(window.rate);
  windows_.push_back(window);
  ++measured_windows_;
  if (!is_enough()) return std::nullopt;
  curve_.set(measured());
  noise_.add(rates_);
  return next();
}

Point Tuner::measured() const {
  const auto windows = static_cast<int>(rates_.size());
  return {present_, median(rates_), median_error(noise_.with(rates_), windows), windows, windows_};
}

// Whether the probe's windows agree and their median is exact, or clearly worse than the best.
bool Tuner::is_enough() const {
  const auto windows = static_cast<int>(rates_.size());
  const bool calibrates = curve_.empty();
  if (windows < (calibrates ? std::max(kCalibrationWindows, options_.fewest_windows) : options_.fewest_windows)) {
    return false;
  }
  if (windows >= options_.most_windows) return true;
  if (!agree(rates_, noise_.with(rates_))) return false;
  const Point point = measured();
  if (point.error <= options_.precision) return true;
  if (curve_.empty()) return false;
  const Point& best = curve_.best(objective());
  return goodput(point) * (1.0 + 3.0 * error_between(point, best, options_.search)) <
         goodput(best) * (1.0 - options_.search.hysteresis);
}

Decision Tuner::next() {
  rates_.clear();
  windows_.clear();
  quiet_.begin_measurement();
  if (looking_back_) {
    looking_back_ = false;
    if (choose(curve_, incumbent_->configuration.learners, options_.search).configuration ==
        incumbent_->configuration) {
      return finish();
    }
  }
  const std::optional<Probe> probe = next_worth_trying();
  if (!probe || probes_ == probe_limit(octaves_)) return finish();
  ++probes_;
  state_ = State::kProbing;
  return go(probe->configuration, false, explain_probe(*probe, present_, curve_, objective()));
}

std::optional<Probe> Tuner::next_worth_trying() const {
  return next_probe(space_, octaves_, curve_, extent_, options_.search);
}

Decision Tuner::finish() {
  const std::optional<int> present = incumbent_ ? std::optional(incumbent_->configuration.learners) : std::nullopt;
  const Point chosen = choose(curve_, present, options_.search);
  const bool changed = !incumbent_ || chosen.configuration != incumbent_->configuration;
  const double enough = (1.0 + options_.search.hysteresis) * goodput(chosen);
  if (remembered_ && goodput(*remembered_) <= enough) remembered_.reset();
  if (incumbent_ && changed) {
    const Point before{.configuration = incumbent_->configuration, .rate = incumbent_baseline_};
    if (goodput(before) > enough && (!remembered_ || goodput(*remembered_) < goodput(before))) remembered_ = before;
  }
  plan_next_search(changed);
  state_ = State::kWatching;
  watch_.emplace(chosen.rate);
  chosen_by_ = objective().known();
  more_to_try_ = next_worth_trying().has_value();
  const Outcome outcome{
      .chosen = chosen, .incumbent = incumbent_, .extent = extent_, .more_to_try = more_to_try_, .probes = probes_};
  return go(chosen.configuration, true, explain_choice(outcome, curve_, options_.search) + explain_disturbance(quiet_));
}

void Tuner::plan_next_search(bool changed) {
  if (changed) {
    next_look_ = kFirstLook;
    next_look_back_ = kFirstLookBack;
    patience_ = kFirstPatience;
  } else {
    patience_ = std::min(2 * patience_, kLastPatience);
  }
}

std::optional<Decision> Tuner::watch(double rate) {
  const std::optional<double> moved = watch_->add(rate);
  if (space_.size() == 1) return std::nullopt;
  if (moved && watch_->windows() >= patience_with(*moved)) return follow_throughput(*moved);
  if (efficiency_asks_to_search()) return follow_efficiency();
  if (!may_look()) return std::nullopt;
  if (remembered_ && watch_->windows() >= next_look_back_) return look_back();
  if (watch_->windows() >= next_look_) return look_around();
  return std::nullopt;
}

// A choice that was made without knowing the efficiency is reconsidered as soon as the efficiency is known.
bool Tuner::efficiency_asks_to_search() const {
  if (!chosen_by_.has_moved_to(objective().known()) || curve_.find(present_.learners) == nullptr) return false;
  const bool has_waited = watch_->windows() >= patience_ && (may_look() || !chosen_by_.is_known());
  if (!has_waited) return false;
  if (choose(curve_, present_.learners, options_.search).configuration != present_) return true;
  return !more_to_try_ && next_worth_trying().has_value();
}

// `move`: ratio of new to old throughput.
int Tuner::patience_with(double move) const {
  return std::max(move, 1.0 / move) > kLargeMove ? patience_ : std::max(patience_, kPatienceWithSmallMoves);
}

// Whether a search without cause keeps the run below one resize per 100 windows.
bool Tuner::may_look() const {
  constexpr int kResizesOfLook = 3;
  return windows_since_choice_ >= 100 * (resizes_since_choice_ + kResizesOfLook);
}

// Starts a search in which the present count needs no probe: its rate is known from the last `windows` watched windows.
void Tuner::begin_search(int windows) {
  const std::vector<double> rates = watch_->last(windows);
  const auto known = static_cast<int>(rates.size());
  extent_ = Extent::kAround;
  quiet_.begin_search();
  noise_ = NoiseEstimate();
  noise_.add(rates);
  curve_ = Curve();
  incumbent_ = Point{present_, median(rates), median_error(noise_.with({}), known), known};
  incumbent_baseline_ = watch_->baseline();
  curve_.set(*incumbent_);
  probes_ = 0;
}

Decision Tuner::follow_throughput(double moved) {
  begin_search(Watch::kBlockWindows);
  Decision decision = next();
  decision.reason =
      fmt::format("throughput of {} has moved from {:.0f} to {:.0f} examples/s and stays there: {}",
                  describe(incumbent_->configuration), incumbent_->rate / moved, incumbent_->rate, decision.reason);
  return decision;
}

// Uses the rates of the last search, scaled by the change of the present count's rate, so only counts that were not
// measured need a probe. Later windows at the chosen count show whether these rates still hold, as after every search.
Decision Tuner::follow_efficiency() {
  const std::string cause = explain_move(chosen_by_, objective().known());
  const Curve last = curve_;
  begin_search(Watch::kRecentWindows);
  const double moved = incumbent_->rate / last.find(present_.learners)->rate;
  for (Point point : last.points()) {
    point.rate *= moved;
    point.measurements.clear();
    if (point.configuration != present_) curve_.set(point);
  }
  Decision decision = next();
  decision.reason = cause + ": " + decision.reason;
  return decision;
}

Decision Tuner::look_around() {
  const int windows = watch_->windows();
  begin_search(Watch::kRecentWindows);
  next_look_ = std::min(2 * next_look_, kLastLook);
  Decision decision = next();
  decision.reason = fmt::format("nothing else was tried for {} windows: {}", windows, decision.reason);
  return decision;
}

Decision Tuner::look_back() {
  begin_search(Watch::kRecentWindows);
  next_look_back_ = std::min(next_look_back_ + kFirstLookBack / 2, kLastLookBack);
  looking_back_ = true;
  probes_ = 1;
  state_ = State::kProbing;
  return go(remembered_->configuration, false,
            fmt::format("{} reached {:.0f} examples/s before the change: trying them again",
                        describe(remembered_->configuration), remembered_->rate));
}

Decision Tuner::out_of_memory() {
  if (last_action_ == Action::kKeep) {
    throw std::logic_error("out of memory was reported, but the last decision was not to resize");
  }
  const Configuration failed = present_;
  const bool grew = last_action_ == Action::kGrow;
  const auto is_lost = [&](const Configuration& c) {
    return grew ? c.learners >= failed.learners : c.learners == failed.learners;
  };
  std::erase_if(space_, is_lost);
  if (remembered_ && is_lost(remembered_->configuration)) remembered_.reset();
  looking_back_ = false;
  rates_.clear();
  windows_.clear();
  curve_.drop_if(is_lost);
  if (incumbent_ && is_lost(incumbent_->configuration)) incumbent_.reset();
  state_ = State::kReturning;
  const std::string limit =
      grew ? fmt::format("and no more than {} from now on", describe(space_.back())) : "as both are needed for a while";
  return go(last_good_, false,
            fmt::format("{} do not fit in memory: back to {}, {}", describe(failed), describe(last_good_), limit));
}

Evidence Tuner::evidence() const {
  Evidence evidence{.noise = noise_.with({}),
                    .probes = probes_,
                    .probe_limit = probe_limit(octaves_),
                    .measured_windows = measured_windows_,
                    .disturbed_windows = quiet_.left_out()};
  if (quiet_.is_known()) evidence.lost = quiet_.all().lost_share();
  if (const Point* here = curve_.find(present_.learners)) {
    evidence.rate = here->rate;
    evidence.windows = here->windows;
  }
  evidence.noise_scale = objective().known().noise_scale();
  if (objective().weighs()) evidence.efficiency = objective().efficiency(present_);
  if (!curve_.empty()) {
    const Point& best = curve_.best(objective());
    evidence.best_learners = best.configuration.learners;
    evidence.best_rate = best.rate;
    if (objective().weighs()) evidence.best_efficiency = objective().efficiency(best.configuration);
  }
  return evidence;
}

Decision Tuner::go(Configuration to, bool done, std::string reason) {
  Decision decision{.from = present_, .to = to, .done = done, .reason = std::move(reason), .evidence = evidence()};
  if (to.learners > present_.learners) decision.action = Action::kGrow;
  if (to.learners < present_.learners) decision.action = Action::kShrink;
  last_action_ = decision.action;
  if (decision.action != Action::kKeep) {
    if (watch_) ++resizes_since_choice_;
    last_good_ = present_;
    present_ = to;
    settle();
  }
  return decision;
}

}  // namespace arbalest::autotuner
