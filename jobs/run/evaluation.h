// Evaluates the model that a run has saved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/options/job_options.h"
#include "jobs/run/trainer.h"
#include "scheduler/scheduler.h"

namespace arbalest::jobs {

struct EvaluationResult {
  double test_loss = 0.0;
  double test_accuracy = 0.0;
  std::optional<double> test_top5_accuracy;  // as top5_accuracy gives it
  std::optional<double> test_rmse;           // as rmse gives it; instead of accuracies
  std::int64_t examples = 0;
};

// With the run's own job.txtpb. Throws kCheckpoint if the model is unusable or its SHA-256 is not `sha256` ("" if
// unknown), and kDiverged if its loss is not finite.
EvaluationResult evaluate_run(const JobOptions& job, const std::string& model_path, const std::string& sha256,
                              const RunContext& context);

// Share of examples whose label is among the five largest of `classes` logits; none where there are not more than five.
std::optional<double> top5_accuracy(const scheduler::Evaluation& evaluation, std::int64_t classes);

// The root of the mean squared error; none where labels are classes.
std::optional<double> rmse(const scheduler::Evaluation& evaluation, const dataflow::InputDescription& input);

// Throws kDiverged if the loss is not finite. `when`: "after epoch 3".
void require_finite(const scheduler::Evaluation& evaluation, std::string_view when);

}  // namespace arbalest::jobs
