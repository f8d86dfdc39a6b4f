// The model of a job -> its graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/field_issues.h"

namespace arbalest::jobs {

// What a model is read for; what is not known is not checked.
struct GraphContext {
  std::optional<dataflow::InputDescription> input;
  std::optional<std::int64_t> batch_size;
};

// Reads `model`, which has its defaults (fill_defaults). Adds what is wrong with it to `issues`, with paths in the job;
// null if that, or the input's being unknown, leaves no graph.
std::shared_ptr<const dataflow::Graph> read_graph(const v1::Model& model, const GraphContext& context,
                                                  dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
