// Scores of a run's model, and the best scores so far. A run is judged by its validation set, if it has one. The test
// set is then evaluated once, at the end of the run, so that nothing is chosen by it. A run without a validation set is
// judged by the test set.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/run_state.h"
#include "options/job_options.h"
#include "train/context/accuracy_target.h"
#include "train/context/run_observer.h"
#include "train/scores/scores.h"
#include "train/session/session.h"

namespace arbalest::jobs {

class ModelScores {
 public:
  explicit ModelScores(const JobOptions& job)
      : metrics_(job.graph->metrics()),
        accuracy_set_(job.data.has_validation() ? EvaluationSet::kValidation : EvaluationSet::kTest),
        patience_(job.training.patience_epochs),
        min_improvement_(job.training.min_improvement),
        target_(job.training.target_accuracy) {}

  // The set by which the run is judged: best model, patience and target accuracy refer to it.
  EvaluationSet accuracy_set() const noexcept { return accuracy_set_; }

  // Evaluates the session's present model on accuracy_set(). Call only when its scheduler is drained.
  void evaluate(Session& session);
  // Evaluates the present model on the sets on which it was not evaluated yet, the test set included. Likewise.
  void evaluate_at_end(Session& session);
  // Loss of the model, as evaluate() measured it, minus the mean loss of the learners' own weights, both on
  // accuracy_set(). A negative gap means that averaging pays.
  double loss_gap(Session& session) const;
  // Drops the evaluation. Call when the model changes.
  void forget();
  bool is_known() const noexcept { return of(accuracy_set_).evaluation.has_value(); }

  // Examples of the set on which the present model was evaluated: those that could be read. None: it was not evaluated.
  std::optional<std::int64_t> examples(EvaluationSet set) const noexcept {
    const std::optional<scheduler::Evaluation>& evaluation = of(set).evaluation;
    return evaluation ? std::optional(evaluation->examples) : std::nullopt;
  }

  // Counts the evaluation as the end of an epoch; returns whether the target is reached now.
  bool count_epoch();

  // Whether the target is reached, also by an earlier process of the run.
  bool target_is_reached() const { return target_.is_reached(); }
  // Whether the last training.patience_epochs epochs have not improved the score.
  bool patience_is_over() const noexcept { return patience_ && epochs_since_ >= *patience_; }

  // The score by which the run is judged; none if the model was not evaluated or its loss is not finite.
  std::optional<double> decisive_score() const;
  // The best of it at the end of an epoch.
  std::optional<double> best_score() const { return of(accuracy_set_).best; }
  ScoreOrder order() const { return order_of(metrics_); }

  // A checkpoint holds this part of earlier evaluations; continue_from() goes on from it.
  ScoreHistory history() const { return {target_.recent(), test_.best, validation_.best, improved_, epochs_since_}; }
  void continue_from(const ScoreHistory& history);

  // Names the loss that is not finite: "the model's loss on the test set is nan"; "" if all are finite.
  std::string problem() const;
  // Throws kDiverged if a loss is not finite. `when`: "after epoch 3"; `scheduler` has trained the model.
  void require_finite(std::string_view when, const scheduler::Scheduler& scheduler) const;

  void write_to(EpochRow& row) const;
  void write_to(RunSummary& summary) const;

  // "10,000 test examples evaluated (loss 0.1234)"
  std::string text() const;

 private:
  // A score is a value of dataflow::score_of(metrics_).
  struct Set {
    std::optional<scheduler::Evaluation> evaluation{};  // of the present model
    std::optional<double> best{};                       // at the end of an epoch
  };

  const dataflow::Metric& metric() const { return dataflow::score_of(metrics_); }
  bool is_fraction() const { return metric().unit == dataflow::MetricUnit::kFraction; }
  const Set& of(EvaluationSet set) const noexcept { return set == EvaluationSet::kTest ? test_ : validation_; }
  Set& of(EvaluationSet set) noexcept { return set == EvaluationSet::kTest ? test_ : validation_; }
  void evaluate(Session& session, EvaluationSet set);
  Scores scores(const scheduler::Evaluation& evaluation) const {
    return {metrics_, evaluation.sums, evaluation.examples};
  }
  void count_patience();

  dataflow::Metrics metrics_;
  EvaluationSet accuracy_set_;
  std::optional<int> patience_;
  double min_improvement_;
  std::optional<double> improved_;  // as in ScoreHistory
  int epochs_since_ = 0;
  AccuracyTarget target_;
  Set test_;
  Set validation_;
};

}  // namespace arbalest::jobs
