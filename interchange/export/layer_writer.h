// Writes the nodes of one layer, as it runs at inference. The last node has the layer's name and writes its output; the
// others have names behind the layer's name and a slash.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataflow/graph.h"
#include "dataflow/parameter_layout.h"
#include "engine/operator.h"
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

class LayerWriter {
 public:
  LayerWriter(OnnxLayer layer, OnnxWriter& file) : layer_(std::move(layer)), file_(file) {}

  // Returns the name of the layer's output: that of its input if the layer does nothing at inference and
  // OnnxLayer::output is "".
  std::string write();

  // For write_operator().
  const OnnxLayer& of() const noexcept { return layer_; }
  OnnxWriter& file() noexcept { return file_; }
  const std::string& input(std::size_t k = 0) const { return layer_.values[k]; }
  const std::string& parameter(std::size_t k) const { return parameters_[k]; }
  // Inputs and then the parameters.
  std::vector<std::string> operands(std::vector<std::string> values) const;
  // Adds the layer's last node.
  onnx::Node& finish(std::string_view kind, const std::vector<std::string>& inputs);
  // Adds a node before the last and returns it; its output is its only one.
  onnx::Node& step(std::string_view kind, const char* part, const std::vector<std::string>& inputs);
  std::string part_name(const char* part) const { return layer_.node.name + "/" + part; }
  // For a layer that does nothing. It has no node, unless its output must have a name of its own.
  void pass_on();

 private:
  OnnxLayer layer_;
  OnnxWriter& file_;
  std::vector<std::string> parameters_;  // names in the file
};

// One function per operator: it adds the layer's nodes. Each stands in interchange/operators, beside the import.
#define ARBALEST_WRITE(Spec) write_operator(LayerWriter& layer, const engine::Spec& spec)
void ARBALEST_OPERATORS(ARBALEST_WRITE);
#undef ARBALEST_WRITE

}  // namespace arbalest::jobs
