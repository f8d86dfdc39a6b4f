#include "autotuner/devices_tuner.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

namespace arbalest::autotuner {

namespace {

const Configuration* find(const std::vector<Configuration>& space, int learners) {
  const auto at = std::ranges::find(space, learners, &Configuration::learners);
  return at == space.end() ? nullptr : &*at;
}

std::vector<Configuration> common_space(const std::vector<DeviceKind>& kinds) {
  if (kinds.empty()) throw std::invalid_argument("there is no device to tune");
  std::vector<std::vector<Configuration>> spaces;
  for (const DeviceKind& kind : kinds) spaces.push_back(kind.space);
  return common_counts(spaces);
}

// With teams there is one kind.
std::vector<DeviceKind> in_teams_of(std::vector<DeviceKind> kinds, const std::optional<TeamOptions>& teams) {
  if (!teams) return kinds;
  if (kinds.size() != 1) throw std::invalid_argument("only devices of one kind are tuned to a size of teams");
  std::vector<Configuration> space = in_teams(kinds.front().space, teams->guess);
  if (!space.empty()) kinds.front().space = std::move(space);
  return kinds;
}

TunerOptions for_all(TunerOptions options, const std::vector<DeviceKind>& kinds) {
  options.devices = 0;
  for (const DeviceKind& kind : kinds) options.devices += kind.devices;
  return options;
}

}  // namespace

DevicesTuner::DevicesTuner(const TunerOptions& options, std::vector<DeviceKind> kinds, const std::vector<int>& guesses,
                           Extent extent, const std::optional<TeamOptions>& teams)
    : options_(options),
      kinds_(in_teams_of(kinds, teams)),
      tuner_(for_all(options, kinds_), common_space(kinds_),
             guesses.empty() ? std::nullopt : std::optional(guesses.front()), extent),
      turns_left_(kinds_.size() > 1 ? static_cast<int>(kinds_.size()) : 0),
      teams_(teams),
      without_teams_(teams ? std::move(kinds.front().space) : std::vector<Configuration>{}) {
  if (!guesses.empty() && guesses.size() != kinds_.size())
    throw std::invalid_argument("a guess for each kind, or none");
  if (std::ranges::adjacent_find(guesses, std::ranges::not_equal_to{}) == guesses.end()) {
    for (const DeviceKind& kind : kinds_) present_.push_back(*find(kind.space, tuner_.first().learners));
    return;
  }
  for (std::size_t i = 0; i < kinds_.size(); ++i) present_.push_back(nearest(kinds_[i].space, guesses[i]));
  --turns_left_;
  take_next_turn();
}

std::optional<DevicesDecision> DevicesTuner::add(std::int64_t tasks, std::int64_t examples, double seconds,
                                                 const ProcessorUse& processor) {
  if (turn_is_over_) take_next_turn();
  if (team_search_ && team_search_->has_ended()) end_team_search();
  if (team_search_) {
    if (!team_search_->has_begun()) return carry_teams(team_search_->begin());
    const std::optional<Decision> step = team_search_->add(tasks, examples, seconds, processor);
    return step ? std::optional(carry_teams(*step)) : std::nullopt;
  }
  const std::optional<Decision> step = tuner_.add(tasks, examples, seconds, processor);
  if (!step) return std::nullopt;
  return carry(*step);
}

DevicesDecision DevicesTuner::out_of_memory() {
  if (team_search_ && team_search_->has_begun()) return carry_teams(team_search_->out_of_memory());
  team_search_.reset();
  if (turn_is_over_) {
    turn_is_over_ = false;
    ++turns_left_;
  }
  const Decision back = tuner_.out_of_memory();
  if (turn_) kinds_[*turn_].space = tuner_.space();
  std::erase_if(without_teams_, [&](const Configuration& c) { return c.learners > tuner_.space().back().learners; });
  return carry(back);
}

void DevicesTuner::set_efficiency(const Efficiency& efficiency) {
  efficiency_ = efficiency;
  tuner_.set_efficiency(efficiency);
  if (team_search_) team_search_->set_objective(tuner_.objective());
}

std::vector<Configuration> DevicesTuner::beside_others(int learners) const {
  std::vector<Configuration> all = present_;
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    if (!turn_ || *turn_ == i) all[i] = *find(kinds_[i].space, learners);
  }
  return all;
}

DevicesDecision DevicesTuner::carry(const Decision& step) {
  present_ = beside_others(step.to.learners);
  DevicesDecision decision{.step = step, .to = present_};
  if (!step.done || kinds_.size() == 1) {
    decision.done = step.done && !needs_team_search(step);
    return decision;
  }
  if (rests_ && step.to.learners != began_with_) turns_left_ = static_cast<int>(kinds_.size()) - 1;
  began_with_ = step.to.learners;
  turn_is_over_ = turns_left_ > 0;
  if (turn_is_over_) --turns_left_;
  rests_ = decision.done = !turn_is_over_;
  return decision;
}

bool DevicesTuner::needs_team_search(const Decision& step) {
  if (!teams_ || std::exchange(follows_teams_, false)) return false;
  TunerOptions options = for_all(options_, kinds_);
  options.search.objective = tuner_.objective();
  const TeamLimits limits{.most_learners = without_teams_.back().learners, .most_at_once = teams_->most_at_once};
  team_search_.emplace(options, limits, *tuner_.curve().find(step.to.learners));
  if (!team_search_->has_work()) team_search_.reset();
  return team_search_.has_value();
}

DevicesDecision DevicesTuner::carry_teams(const Decision& step) {
  present_ = {step.to};
  return {.step = step, .to = present_, .done = step.done && !team_turn_lasts()};
}

void DevicesTuner::end_team_search() {
  const TeamSearch search = *std::exchange(team_search_, std::nullopt);
  earlier_turns_were_quiet_ = is_quiet() && search.is_quiet();
  if (!search.has_changed()) return tuner_.settle();
  kinds_.front().space = in_teams(without_teams_, search.best().team);
  tuner_ = Tuner(for_all(options_, kinds_), kinds_.front().space, search.best().learners, Extent::kAround);
  if (efficiency_) tuner_.set_efficiency(*efficiency_);
  follows_teams_ = true;
}

void DevicesTuner::take_next_turn() {
  turn_is_over_ = false;
  const std::size_t kind = turn_ ? (*turn_ + 1) % kinds_.size() : 0;
  turn_ = kind;
  began_with_ = present_[kind].learners;
  TunerOptions options = options_;
  options.devices = kinds_[kind].devices;
  options.other_learners = 0;
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    if (i != kind) options.other_learners += kinds_[i].devices * present_[i].learners;
  }
  earlier_turns_were_quiet_ = is_quiet();
  tuner_ = Tuner(options, kinds_[kind].space, present_[kind].learners, Extent::kAround);
  if (efficiency_) tuner_.set_efficiency(*efficiency_);
}

}  // namespace arbalest::autotuner
