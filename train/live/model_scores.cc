#include "train/live/model_scores.h"

#include <cmath>

#include "engine/base/error.h"
#include "messages/text.h"
#include "scheduler/replicas/diverged.h"

namespace arbalest::jobs {

const char* to_string(EvaluationSet set) { return set == EvaluationSet::kTest ? "test" : "validation"; }

namespace {

dataflow::BatchRing& ring_of(Session& session, EvaluationSet set) {
  return set == EvaluationSet::kTest ? session.test_ring() : *session.validation_ring();
}

}  // namespace

void ModelScores::evaluate(Session& session) { evaluate(session, accuracy_set_); }

void ModelScores::evaluate_at_end(Session& session) {
  if (!is_known()) evaluate(session, accuracy_set_);
  if (!test_.evaluation) evaluate(session, EvaluationSet::kTest);
}

void ModelScores::evaluate(Session& session, EvaluationSet set) {
  of(set).evaluation = session.scheduler().evaluate(ring_of(session, set));
}

double ModelScores::loss_gap(Session& session) const {
  return of(accuracy_set_).evaluation->loss() - session.scheduler().evaluate_replicas(ring_of(session, accuracy_set_));
}

void ModelScores::forget() {
  test_.evaluation.reset();
  validation_.evaluation.reset();
}

bool ModelScores::count_epoch() {
  std::optional<double>& best = of(accuracy_set_).best;
  best = order().better(decisive_score(), best);
  count_patience();
  const std::optional<double> score = decisive_score();
  return score && is_fraction() && target_.add(*score);
}

void ModelScores::count_patience() {
  const std::optional<double> now = decisive_score();
  const bool improves = order().improves(now, improved_, min_improvement_);
  if (improves) improved_ = now;
  epochs_since_ = improves ? 0 : epochs_since_ + 1;
}

std::optional<double> ModelScores::decisive_score() const {
  const std::optional<scheduler::Evaluation>& judged = of(accuracy_set_).evaluation;
  if (!judged || !std::isfinite(judged->loss())) return std::nullopt;
  return dataflow::value_of(metric(), judged->sums, judged->examples);
}

void ModelScores::continue_from(const ScoreHistory& history) {
  target_.continue_from(history.recent);
  test_.best = history.best_test;
  validation_.best = history.best_validation;
  improved_ = history.improved;
  epochs_since_ = history.epochs_since;
}

std::string ModelScores::problem() const {
  for (const EvaluationSet set : {EvaluationSet::kTest, EvaluationSet::kValidation}) {
    const std::optional<scheduler::Evaluation>& evaluation = of(set).evaluation;
    if (!evaluation || std::isfinite(evaluation->loss())) continue;
    return fmt::format("the model's loss on the {} set is {}", to_string(set), unsigned_nan(evaluation->loss()));
  }
  return "";
}

void ModelScores::require_finite(std::string_view when, const scheduler::Scheduler& scheduler) const {
  const std::string what = problem();
  if (what.empty()) return;
  throw scheduler::Diverged(fmt::format(
      "training diverged: {} {}; {}, or check the initial values of its layers and the data's normalization", when,
      what, scheduler.divergence_remedy()));
}

void ModelScores::write_to(EpochRow& row) const {
  const scheduler::Evaluation& judged = *of(accuracy_set_).evaluation;
  if (row.replica_distance == 0.0) {  // it is measured, but no averaging has ended in this epoch
    row.replica_distance = judged.replica_distance;
    row.replica_spread = judged.replica_spread;
  }
  (accuracy_set_ == EvaluationSet::kTest ? row.test : row.validation) = scores(judged);
}

void ModelScores::write_to(RunSummary& summary) const {
  (accuracy_set_ == EvaluationSet::kTest ? summary.best_test : summary.best_validation) = best_score();
  if (is_fraction()) summary.held_accuracy = target_.held();
  if (test_.evaluation) summary.test = scores(*test_.evaluation);
  if (validation_.evaluation) summary.validation = scores(*validation_.evaluation);
}

std::string ModelScores::text() const {
  std::string text;
  for (const EvaluationSet set : {EvaluationSet::kTest, EvaluationSet::kValidation}) {
    const std::optional<scheduler::Evaluation>& evaluation = of(set).evaluation;
    if (!evaluation) continue;
    text += fmt::format("{}{} evaluated (loss {})", text.empty() ? "" : ", ",
                        counted(evaluation->examples, fmt::format("{} example", to_string(set))),
                        loss_text(evaluation->loss()));
  }
  return text;
}

}  // namespace arbalest::jobs
