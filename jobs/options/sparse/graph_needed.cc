#include "jobs/options/sparse/graph_needed.h"

#include "engine/error.h"

namespace arbalest::jobs {

void require_graph(const JobOptions& job, std::string_view command) {
  if (!job.sparse) return;
  engine::fail(
      engine::ErrorKind::kInvalidJob,
      "{}: '{}' needs a model of layers, and this job's model is sparse_logistic; train, evaluate and validate "
      "are for both (docs/sparse.md)",
      job.name, command);
}

}  // namespace arbalest::jobs
