// The interface of a way to train: on mini-batches of a graph (graph/graph_trainer.h), or row by row without one
// (sparse/sparse_trainer.h). train/train.h chooses, and describes the three functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "options/job_options.h"
#include "train/context/run_context.h"
#include "train/context/run_observer.h"
#include "train/scores/class_scores.h"

namespace arbalest::jobs {

struct DryRun {
  std::string text;                   // one line for the user
  std::vector<std::string> warnings;  // of the job, and from running it
};

// A model that a run has saved.
struct ModelFile {
  std::string path;
  std::string sha256 = {};  // "" if unknown
};

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

struct Trainer {
  RunSummary (*train)(const JobOptions& job, const RunContext& context);
  DryRun (*dry_run)(const JobOptions& job, const RunContext& context);
  EvaluationResult (*evaluate)(const JobOptions& job, const ModelFile& model, const RunContext& context,
                               const EvaluationOptions& options);
};

}  // namespace arbalest::jobs
