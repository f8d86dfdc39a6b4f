#include "jobs/run/evaluation.h"

#include <cmath>

#include "engine/error.h"
#include "jobs/messages/text.h"
#include "jobs/run/model_scores.h"
#include "jobs/run/session.h"
#include "jobs/run/weights/saved_model.h"

namespace arbalest::jobs {

EvaluationResult evaluate_run(const JobOptions& job, const std::string& model_path, const std::string& sha256,
                              const RunContext& context, const EvaluationOptions& options) {
  const EvaluationSet set = options.set;
  const bool validates = set == EvaluationSet::kValidation;
  if (validates && !job.data.has_validation()) {
    engine::fail(
        engine::ErrorKind::kUsage,
        "the job '{}' has no validation set (data.validation) and names no files of one; evaluate it on the test set",
        job.name);
  }
  if (options.per_class && job.data.input.has_ids()) {
    engine::fail(engine::ErrorKind::kUsage, "the job '{}' predicts numbers and has no classes", job.name);
  }
  const std::vector<dataflow::NamedTensor> model = read_finite_model(model_path, sha256);
  JobOptions fitting = job;
  // Any number of learners may evaluate, and it does not change.
  fitting.learners_are_given = false;
  fitting.tuned.reset();
  fitting.schedule.clear();
  const auto session =
      open_session(fitting, context.data_root, validates ? Session::Purpose::kValidation : Session::Purpose::kTest,
                   context.device_options, options.per_class ? Session::Input::kRing : Session::Input::kResident);
  try {
    session->scheduler().load(model);
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), fmt::format("'{}' does not fit the run's job: {}", model_path, error.what()));
  }
  dataflow::BatchRing& ring = validates ? *session->validation_ring() : session->test_ring();
  const scheduler::Evaluation evaluation = session->scheduler().evaluate(ring);
  if (!std::isfinite(evaluation.loss)) {
    engine::fail(engine::ErrorKind::kDiverged,
                 "'{}' is of no use: its loss on the {} set is {}, so what it predicts means nothing; the run that "
                 "saved it had diverged",
                 model_path, to_string(set), unsigned_nan(evaluation.loss));
  }
  return {.set = set,
          .loss = evaluation.loss,
          .accuracy = evaluation.accuracy,
          .top5_accuracy = top5_accuracy(evaluation, job.data.input.classes),
          .rmse = rmse(evaluation, job.data.input),
          .examples = evaluation.examples,
          .classes =
              options.per_class ? std::optional(score_classes(fitting, model, session->device(), ring)) : std::nullopt};
}

}  // namespace arbalest::jobs
