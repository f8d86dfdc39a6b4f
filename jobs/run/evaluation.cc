#include "jobs/run/evaluation.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"
#include "engine/ops/accuracy.h"
#include "jobs/export/safetensors.h"
#include "jobs/run/session.h"
#include "jobs/wording/text.h"

namespace arbalest::jobs {

void require_finite(const scheduler::Evaluation& evaluation, std::string_view when) {
  if (std::isfinite(evaluation.loss)) return;
  engine::fail(engine::ErrorKind::kDiverged,
               "training diverged: {} the model's loss on the test set is {}; lower learning_rate.base, or check the "
               "initial values of its layers and the data's normalization",
               when, unsigned_nan(evaluation.loss));
}

std::optional<double> top5_accuracy(const scheduler::Evaluation& evaluation, std::int64_t classes) {
  if (classes <= engine::kTopRanks) return std::nullopt;
  return evaluation.top5_accuracy;
}

std::optional<double> rmse(const scheduler::Evaluation& evaluation, const dataflow::InputDescription& input) {
  if (!input.has_ids()) return std::nullopt;
  return std::sqrt(evaluation.loss);
}

EvaluationResult evaluate_run(const JobOptions& job, const std::string& model_path, const std::string& sha256,
                              const RunContext& context) {
  const std::vector<dataflow::NamedTensor> model = read_safetensors(model_path, sha256);
  JobOptions fitting = job;
  // How many evaluate is of no consequence, and there is no need to change it.
  fitting.learners_are_given = false;
  fitting.tuned.reset();
  fitting.schedule.clear();
  const auto session = open_session(fitting, context.data_root, Session::Purpose::kEvaluation, context.device_options);
  for (const dataflow::NamedTensor& tensor : model) {
    if (!std::ranges::all_of(tensor.values, [](float value) { return std::isfinite(value); })) {
      engine::fail(engine::ErrorKind::kCheckpoint,
                   "'{}': tensor '{}' has values that are not finite: the file is damaged", model_path, tensor.name);
    }
  }
  try {
    session->scheduler().load(model);
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), fmt::format("'{}' does not fit the run's job: {}", model_path, error.what()));
  }
  const scheduler::Evaluation evaluation = session->scheduler().evaluate(session->test_ring());
  if (!std::isfinite(evaluation.loss)) {
    engine::fail(engine::ErrorKind::kDiverged,
                 "'{}' is of no use: its loss on the test set is {}, so what it predicts means nothing; the run that "
                 "saved it had diverged",
                 model_path, unsigned_nan(evaluation.loss));
  }
  return {.test_loss = evaluation.loss,
          .test_accuracy = evaluation.accuracy,
          .test_top5_accuracy = top5_accuracy(evaluation, job.data.input.classes),
          .test_rmse = rmse(evaluation, job.data.input),
          .examples = evaluation.examples};
}

}  // namespace arbalest::jobs
