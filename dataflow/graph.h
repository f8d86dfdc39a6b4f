// The graph of a model: layers and the tensors between them. It is checked once and immutable afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/input/input_description.h"
#include "dataflow/layers/layer.h"
#include "engine/base/error.h"
#include "engine/base/shape.h"

namespace arbalest::dataflow {

// A layer as the user wrote it. The name is also the name of its output.
struct LayerDescription {
  std::string name;
  std::vector<std::string> inputs;     // names of tensors of the data or of other layers, in any order of definition
  std::shared_ptr<const Layer> layer;  // null: the layer's kind is unknown
  bool is_sound = true;                // false: its own values are wrong, so its output has no shape

  // Whether the output's shape follows from the shapes of the inputs.
  bool has_shape() const noexcept { return layer != nullptr && is_sound; }
};

struct GraphIssue {
  int layer = -1;       // index in the given list; -1: the model as a whole
  int input = -1;       // index in the layer's inputs; -1: the issue concerns no single input
  std::string message;  // names the layer
  // Field of the layer's message in a job file, such as "kernel", if its value causes the issue.
  std::string field{};
};

// All issues of a graph, reported at once.
class GraphError : public engine::Error {
 public:
  explicit GraphError(std::vector<GraphIssue> issues);
  const std::vector<GraphIssue>& issues() const noexcept { return issues_; }

 private:
  std::vector<GraphIssue> issues_;
};

// Rules that say what training does with a parameter, beyond its layer's own.
struct ParameterRule {
  bool is_frozen = false;                 // training does not change it
  float learning_rate_multiplier = 1.0F;  // times the layer's own multiplier

  bool operator==(const ParameterRule&) const = default;
};

// Returns the rule of the parameter with this name, such as "conv1.weight".
using ParameterRuleOf = std::function<ParameterRule(const std::string& name)>;

class Graph {
 public:
  struct Node {
    std::string name;
    std::shared_ptr<const Layer> layer;
    std::vector<int> inputs;             // tensor numbers
    int output = -1;                     // tensor number: Graph::inputs() + index of the node
    std::uint32_t key = 0;               // key of the node's random numbers: its number before fusion
    std::string label{};                 // name in errors and traces: "dense1+relu1" after fusion, else `name`
    bool training_only = false;          // a loss that is not the main one
    std::vector<ParameterRule> rules{};  // by parameter; empty: none (dataflow/parameter_rules.h)
  };

  // Sorts the layers so that each follows its inputs (in the given order otherwise) and infers shapes. The last loss
  // given is the main one. If it compares with classes and the model has no accuracy layer, build() adds one. Training
  // minimizes the weighted sum of all losses; at inference only the main loss runs.
  //
  // Throws GraphError with all issues at once, but without issues that follow from others: a missing or repeated name,
  // an unknown input, a cycle, shapes that do not fit, an output that no layer reads, no loss, logits that do not match
  // the classes, tables that do not match the ids. If there is none of these, it reports a model without parameters and
  // parameters that no loss depends on. A layer without a shape always makes build() throw, possibly without any issue,
  // because the caller already knows what is wrong with that layer.
  static Graph build(const InputDescription& input, const std::vector<LayerDescription>& layers);

  const InputDescription& input() const noexcept { return input_; }
  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  // The graph's inputs are the tensors 0 to inputs() - 1, in the order of input(); label() is the last of them. The
  // outputs of the nodes follow, in their order.
  int inputs() const noexcept { return static_cast<int>(input_.tensors.size()); }
  int label() const noexcept { return inputs() - 1; }
  int tensors() const noexcept { return inputs() + static_cast<int>(nodes_.size()); }
  // The metrics of the main loss, and then those of the metric layer. The first one is the loss.
  const Metrics& metrics() const noexcept { return metrics_; }
  // Shapes of every tensor for mini-batches of `batch` examples.
  std::vector<engine::Shape> shapes(std::int64_t batch) const;
  // One node's parameters under its rules. `shapes`: as shapes() returns them.
  static std::vector<ParameterSpec> parameters(const Node& node, const std::vector<engine::Shape>& shapes);
  // Shapes of one node's inputs, picked from `shapes`.
  static std::vector<engine::Shape> input_shapes(const Node& node, const std::vector<engine::Shape>& shapes);

 private:
  friend Graph with_rules(const Graph& graph, const ParameterRuleOf& rule_of);  // dataflow/parameter_rules.cc
  friend Graph fuse_activations(const Graph& graph, int& kept);                 // dataflow/fusion.cc
  friend Graph fuse_sums(const Graph& graph, int& kept);
  friend Graph fuse_metric(const Graph& graph, int& kept);
  friend class GraphSplitter;  // dataflow/split/split_graph.cc

  InputDescription input_;
  std::vector<Node> nodes_;
  Metrics metrics_;
};

}  // namespace arbalest::dataflow
