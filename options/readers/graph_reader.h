// Reads the model of a job into its graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/fields/field_issues.h"

namespace arbalest::jobs {

// Facts about the model's input. A value that is not set is unknown and is not checked.
struct GraphContext {
  std::optional<dataflow::InputDescription> input;
  std::optional<std::int64_t> batch_size;
};

// Reads `model`, which must have its defaults (fill_defaults). Adds issues with paths in the job. Returns null if there
// are issues or the input is unknown.
std::shared_ptr<const dataflow::Graph> read_graph(const v1::Model& model, const GraphContext& context,
                                                  dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
