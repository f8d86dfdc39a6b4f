#include "train/live/plateau.h"

#include <algorithm>

#include "messages/text.h"

namespace arbalest::jobs {

bool count_epoch(const scheduler::Plateau& rule, std::optional<double> score, ScoreOrder order, bool is_judged,
                 PlateauState& state) {
  const bool improves = order.improves(score, state.best, rule.min_improvement);
  if (improves) state.best = score;
  state.bad_epochs = improves || !is_judged ? 0 : state.bad_epochs + 1;
  if (state.cooldown > 0) {
    --state.cooldown;
    state.bad_epochs = 0;
  }
  if (state.bad_epochs <= rule.patience) return false;
  state.bad_epochs = 0;
  state.cooldown = rule.cooldown;
  const double factor = std::max(state.factor * rule.factor, rule.min_factor);
  if (factor >= state.factor) return false;  // it is at its minimum
  state.factor = factor;
  ++state.drops;
  return true;
}

void follow_plateau(LiveRun& run, int epoch, bool is_last) {
  const scheduler::LearningRateSchedule& schedule = run.job.learning_rate;
  const auto* rule = std::get_if<scheduler::Plateau>(&schedule.curve);
  if (rule == nullptr) return;
  PlateauState& state = run.state.plateau;
  const bool is_judged = epoch >= schedule.warm_up.epochs;
  if (!count_epoch(*rule, run.scores.decisive_score(), run.scores.order(), is_judged, state)) return;
  run.apply_rate_factor();
  if (is_last) return;
  const scheduler::Scheduler& scheduler = run.session->scheduler();
  const RateDropRow row{.batch = scheduler.batches(),
                        .epoch = scheduler.progress(),
                        .elapsed_seconds = run.seconds(),
                        .factor = state.factor,
                        .learning_rate = static_cast<double>(scheduler.learning_rate()),
                        .reason = fmt::format("{} in a row without an improvement (learning_rate.plateau)",
                                              counted(std::int64_t{rule->patience} + 1, "epoch"))};
  run.notify(&RunObserver::on_rate_drop, row);
}

}  // namespace arbalest::jobs
