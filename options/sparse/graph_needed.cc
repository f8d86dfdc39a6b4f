#include "options/sparse/graph_needed.h"

#include "engine/base/error.h"

namespace arbalest::jobs {

void require_graph(const JobOptions& job, std::string_view command) {
  if (job.graph != nullptr) return;
  engine::fail(
      engine::ErrorKind::kInvalidJob,
      "{}: '{}' needs a model of layers, and this job's model is sparse_logistic; train, evaluate and validate "
      "are for both (docs/sparse.md)",
      job.name, command);
}

void require_replicas(const JobOptions& job, std::string_view command) {
  require_graph(job, command);
  if (!job.sparse) return;
  engine::fail(engine::ErrorKind::kInvalidJob,
               "{}: '{}' is about mini-batches and replicas, and hogwild on ratings has neither; choose another scheme "
               "with --set synchronization=sma",
               job.name, command);
}

}  // namespace arbalest::jobs
