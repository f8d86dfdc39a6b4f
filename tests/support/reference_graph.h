// Runs a whole model in double precision, layer by layer as in the job file: forward, and backward by the chain rule
// with all gradients kept. It shares no plans, layouts, fusion or devices with the engine.
#pragma once

#include <map>
#include <string>

#include "dataflow/graph.h"
#include "tests/support/reference_ops.h"

namespace arbalest::tests {

struct GraphRun {
  double loss = 0.0;       // the trained loss: mean over labeled examples, weighted sum of the losses
  double main_loss = 0.0;  // the last loss alone
  std::int64_t correct = 0;
  std::map<std::string, Values> gradients;  // by name of the parameter: "conv1.weight"
};

// `parameters`: by name, in canonical order. `images`: [n, c, h, w], with n labels. Throws std::logic_error for a layer
// without reference.
GraphRun run_reference(const dataflow::Graph& graph, const std::map<std::string, Values>& parameters,
                       const Values& images, const Labels& labels);

}  // namespace arbalest::tests
