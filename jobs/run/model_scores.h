// The scores of a run's model on the test set and, where there is one, the validation set, and the best ones so far.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jobs/options/job_options.h"
#include "jobs/run/accuracy_target.h"
#include "jobs/run/run_observer.h"
#include "jobs/run/session.h"

namespace arbalest::jobs {

// Share of examples whose label is among the five largest of `classes` logits; none where there are not more than five.
std::optional<double> top5_accuracy(const scheduler::Evaluation& evaluation, std::int64_t classes);

// The root of the mean squared error; none where labels are classes.
std::optional<double> rmse(const scheduler::Evaluation& evaluation, const dataflow::InputDescription& input);

class ModelScores {
 public:
  explicit ModelScores(const JobOptions& job)
      : input_(job.data.input),
        accuracy_set_(job.data.validation ? EvaluationSet::kValidation : EvaluationSet::kTest),
        target_(job.training.target_accuracy) {}

  // The set whose accuracy the target is for.
  EvaluationSet accuracy_set() const noexcept { return accuracy_set_; }

  // Evaluates the session's model as it is now. Only when its scheduler is drained.
  void evaluate(Session& session);
  // The loss of the model, as evaluate() has found it, less the mean loss of the learners' own weights on the same
  // examples: those of accuracy_set(). Below 0, averaging pays.
  double loss_gap(Session& session) const;
  // Drops the evaluation, because the model changes.
  void forget();
  bool is_known() const noexcept { return test_.evaluation.has_value(); }

  // Counts the evaluation as that of an epoch's end; true if the target is reached now.
  bool count_epoch();

  // Returns which loss is not finite: "the model's loss on the test set is nan"; "" if both are.
  std::string problem() const;
  // Throws kDiverged if a loss is not finite. `when`: "after epoch 3".
  void require_finite(std::string_view when) const;

  void write_to(EpochRow& row) const;
  void write_to(RunSummary& summary) const;

  // "10,000 test examples evaluated (loss 0.1234)"
  std::string text() const;

 private:
  // A score is an accuracy or an RMSE.
  struct Set {
    std::optional<scheduler::Evaluation> evaluation{};  // of the model as it is now
    std::optional<double> best{};                       // at the end of an epoch
  };

  bool predicts_numbers() const noexcept { return input_.has_ids(); }
  const Set& of(EvaluationSet set) const noexcept { return set == EvaluationSet::kTest ? test_ : validation_; }
  double score(const scheduler::Evaluation& evaluation) const;
  std::optional<double> better(const Set& set) const;

  dataflow::InputDescription input_;
  EvaluationSet accuracy_set_;
  AccuracyTarget target_;
  Set test_;
  Set validation_;
};

}  // namespace arbalest::jobs
