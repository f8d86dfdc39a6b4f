// Evaluates the model that a run has saved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jobs/options/job_options.h"
#include "jobs/run/scores/class_scores.h"
#include "jobs/run/trainer.h"

namespace arbalest::jobs {

struct EvaluationResult {
  EvaluationSet set = EvaluationSet::kTest;
  dataflow::Metrics metrics = {};  // of the model
  Scores scores{};
  std::int64_t examples = 0;
  std::optional<ClassScores> classes{};    // if asked for
  std::vector<std::string> class_names{};  // by class; empty: the classes have no names, or were not asked for
  std::vector<std::string> warnings = {};  // about the data, and where the model says something else than the job
};

struct EvaluationOptions {
  EvaluationSet set = EvaluationSet::kTest;
  bool per_class = false;  // for classifiers: also counts predictions by class
};

// Evaluates the model with the run's own job.txtpb, on as many runners as the job has learners. They run forward only:
// no gradient and no state of an optimizer takes memory. The result has the bits of the run's own evaluation. Throws
// kUsage if the run has no such set, or no classes and per_class is asked for, kCheckpoint if the model is unusable or
// its SHA-256 differs from `sha256` ("" if unknown), and kDiverged if its loss is not finite. Throws kData if more
// images cannot be read than the job's max_skipped allows.
EvaluationResult evaluate_run(const JobOptions& job, const std::string& model_path, const std::string& sha256,
                              const RunContext& context, const EvaluationOptions& options = {});

}  // namespace arbalest::jobs
