#include "jobs/predict/described_model.h"

#include <utility>

#include <fmt/format.h>

#include "engine/error.h"
#include "jobs/export/safetensors.h"
#include "jobs/options/sparse/graph_needed.h"
#include "jobs/run/weights/describe_model.h"
#include "jobs/run/weights/saved_model.h"

namespace arbalest::jobs {

namespace {

ModelDescription read_description(const JobOptions& job, const std::string& path) {
  const ModelDescription expected = describe_model(job, job.data.class_names);
  std::optional<ModelDescription> description;
  try {
    description = description_in(read_safetensors_metadata(path));
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), fmt::format("'{}': {}", path, error.what()));
  }
  if (!description) return expected;
  const bool fits = description->shape == expected.shape && description->outputs == expected.outputs &&
                    description->input == expected.input && description->ids == expected.ids;
  if (fits) return *std::move(description);
  engine::fail(engine::ErrorKind::kCheckpoint,
               "'{}' was trained on other data than the run's job.txtpb says: restore the file that belongs to it",
               path);
}

}  // namespace

DescribedModel read_described_model(JobOptions job, const std::string& path, const std::string& sha256) {
  require_graph(job, "arbalest predict");
  std::vector<dataflow::NamedTensor> tensors = read_finite_model(path, sha256);
  ModelDescription description = read_description(job, path);
  return {std::move(job), std::move(description), std::move(tensors)};
}

}  // namespace arbalest::jobs
