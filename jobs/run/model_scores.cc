#include "jobs/run/model_scores.h"

#include <cmath>

#include "engine/error.h"
#include "engine/ops/accuracy.h"
#include "jobs/messages/text.h"
#include "scheduler/diverged.h"

namespace arbalest::jobs {

const char* to_string(EvaluationSet set) { return set == EvaluationSet::kTest ? "test" : "validation"; }

namespace {

dataflow::BatchRing& ring_of(Session& session, EvaluationSet set) {
  return set == EvaluationSet::kTest ? session.test_ring() : *session.validation_ring();
}

}  // namespace

std::optional<double> top5_accuracy(const scheduler::Evaluation& evaluation, std::int64_t classes) {
  if (classes <= engine::kTopRanks) return std::nullopt;
  return evaluation.top5_accuracy;
}

std::optional<double> rmse(const scheduler::Evaluation& evaluation, const dataflow::InputDescription& input) {
  if (!input.predicts_numbers()) return std::nullopt;
  return std::sqrt(evaluation.loss);
}

void ModelScores::evaluate(Session& session) { evaluate(session, accuracy_set_); }

void ModelScores::evaluate_at_end(Session& session) {
  if (!is_known()) evaluate(session, accuracy_set_);
  if (!test_.evaluation) evaluate(session, EvaluationSet::kTest);
}

void ModelScores::evaluate(Session& session, EvaluationSet set) {
  of(set).evaluation = session.scheduler().evaluate(ring_of(session, set));
}

double ModelScores::loss_gap(Session& session) const {
  return of(accuracy_set_).evaluation->loss - session.scheduler().evaluate_replicas(ring_of(session, accuracy_set_));
}

void ModelScores::forget() {
  test_.evaluation.reset();
  validation_.evaluation.reset();
}

double ModelScores::score(const scheduler::Evaluation& evaluation) const {
  return predicts_numbers() ? std::sqrt(evaluation.loss) : evaluation.accuracy;
}

bool ModelScores::count_epoch() {
  std::optional<double>& best = of(accuracy_set_).best;
  best = order().better(decisive_score(), best);
  count_patience();
  const scheduler::Evaluation& judged = *of(accuracy_set_).evaluation;
  return std::isfinite(judged.loss) && target_.add(judged.accuracy);
}

void ModelScores::count_patience() {
  const std::optional<double> now = decisive_score();
  const bool improves = order().improves(now, improved_, min_improvement_);
  if (improves) improved_ = now;
  epochs_since_ = improves ? 0 : epochs_since_ + 1;
}

std::optional<double> ModelScores::decisive_score() const {
  const std::optional<scheduler::Evaluation>& judged = of(accuracy_set_).evaluation;
  if (!judged || !std::isfinite(judged->loss)) return std::nullopt;
  return score(*judged);
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
    if (!evaluation || std::isfinite(evaluation->loss)) continue;
    return fmt::format("the model's loss on the {} set is {}", to_string(set), unsigned_nan(evaluation->loss));
  }
  return "";
}

void ModelScores::require_finite(std::string_view when) const {
  const std::string what = problem();
  if (what.empty()) return;
  throw scheduler::Diverged(fmt::format(
      "training diverged: {} {}; lower learning_rate.base, or check the initial values of its layers and the "
      "data's normalization",
      when, what));
}

void ModelScores::write_to(EpochRow& row) const {
  const scheduler::Evaluation& judged = *of(accuracy_set_).evaluation;
  if (row.replica_distance == 0.0) {  // no averaging has ended in this epoch
    row.replica_distance = judged.replica_distance;
    row.replica_spread = judged.replica_spread;
  }
  const bool is_test = accuracy_set_ == EvaluationSet::kTest;
  (is_test ? row.test_loss : row.validation_loss) = judged.loss;
  (is_test ? row.test_rmse : row.validation_rmse) = rmse(judged, input_);
  if (predicts_numbers()) return;
  (is_test ? row.test_accuracy : row.validation_accuracy) = judged.accuracy;
  (is_test ? row.test_top5_accuracy : row.validation_top5_accuracy) = top5_accuracy(judged, input_.classes());
}

void ModelScores::write_to(RunSummary& summary) const {
  const bool is_test = accuracy_set_ == EvaluationSet::kTest;
  std::optional<double>& best_accuracy = is_test ? summary.best_test_accuracy : summary.best_validation_accuracy;
  std::optional<double>& best_rmse = is_test ? summary.best_test_rmse : summary.best_validation_rmse;
  (predicts_numbers() ? best_rmse : best_accuracy) = best_score();
  if (!predicts_numbers()) summary.held_accuracy = target_.held();
  if (const auto& test = test_.evaluation) {
    summary.test_loss = test->loss;
    summary.test_top5_accuracy = predicts_numbers() ? std::nullopt : top5_accuracy(*test, input_.classes());
    if (!predicts_numbers()) summary.test_accuracy = test->accuracy;
    if (std::isfinite(test->loss)) summary.test_rmse = rmse(*test, input_);
  }
  if (const auto& validation = validation_.evaluation) {
    summary.validation_loss = validation->loss;
    summary.validation_top5_accuracy = predicts_numbers() ? std::nullopt : top5_accuracy(*validation, input_.classes());
    if (!predicts_numbers()) summary.validation_accuracy = validation->accuracy;
    if (std::isfinite(validation->loss)) summary.validation_rmse = rmse(*validation, input_);
  }
}

std::string ModelScores::text() const {
  std::string text;
  for (const EvaluationSet set : {EvaluationSet::kTest, EvaluationSet::kValidation}) {
    const std::optional<scheduler::Evaluation>& evaluation = of(set).evaluation;
    if (!evaluation) continue;
    text += fmt::format("{}{} evaluated (loss {})", text.empty() ? "" : ", ",
                        counted(evaluation->examples, fmt::format("{} example", to_string(set))),
                        loss_text(evaluation->loss));
  }
  return text;
}

}  // namespace arbalest::jobs
