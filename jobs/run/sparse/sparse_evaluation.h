// Evaluates the saved model of a sparse job.
#pragma once

#include <string>

#include "jobs/run/evaluation.h"

namespace arbalest::jobs {

// evaluate_run() calls this function for sparse jobs. Throws kUsage for a validation set and for scores by class.
EvaluationResult evaluate_sparse_run(const JobOptions& job, const std::string& model_path, const std::string& sha256,
                                     const std::string& data_root, const EvaluationOptions& options);

}  // namespace arbalest::jobs
