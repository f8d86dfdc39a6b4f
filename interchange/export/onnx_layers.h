// Writes a layer of a graph, as it runs at inference, as nodes of ONNX's operator set 13.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dataflow/graph.h"
#include "dataflow/parameter_layout.h"
#include "interchange/export/onnx_writer.h"

namespace arbalest::jobs {

struct OnnxLayer {
  const dataflow::Graph::Node& node;                    // not a loss or metric
  std::span<const engine::Shape> inputs;                // their shapes
  std::span<const dataflow::ParameterSpec> parameters;  // of the node
  std::vector<std::string> values;                      // names of the inputs in the file
  std::vector<dataflow::NamedTensor> weights;           // of the parameters, in their order; moved into the file
  std::string output;                                   // name of the output in the file; "": the layer's name
};

// Returns the name of the layer's output: that of its input if the layer does nothing at inference and `output` is "".
std::string write_layer(OnnxLayer layer, OnnxWriter& writer);

}  // namespace arbalest::jobs
