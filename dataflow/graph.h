// Layers and the tensors between them: checked once, then immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "dataflow/layer.h"
#include "engine/error.h"
#include "engine/shape.h"

namespace arbalest::dataflow {

// A layer as somebody wrote it. The name is also the name of its output.
struct LayerDescription {
  std::string name;
  std::vector<std::string> inputs;  // "image" (or "ids"), "label", or other layers' names, in any order of definition
  std::shared_ptr<const Layer> layer;  // null: it is not known what it does
  bool is_sound = true;                // false: its own values are wrong, so that its output has no shape

  // Has an output whose shape follows from those of its inputs.
  bool has_shape() const noexcept { return layer != nullptr && is_sound; }
};

struct GraphIssue {
  int layer = -1;       // index in the given list; -1: the model as a whole
  int input = -1;       // index in the layer's inputs, if one input is to blame
  std::string message;  // names the layer
  std::string field{};  // of the layer's kind in a job file, such as "kernel", if its value is to blame
};

// Everything that is wrong with a graph, at once.
class GraphError : public engine::Error {
 public:
  explicit GraphError(std::vector<GraphIssue> issues);
  const std::vector<GraphIssue>& issues() const noexcept { return issues_; }

 private:
  std::vector<GraphIssue> issues_;
};

class Graph {
 public:
  static constexpr int kImage = 0;  // tensor numbers of the graph's inputs
  static constexpr int kLabel = 1;

  struct Node {
    std::string name;
    std::shared_ptr<const Layer> layer;
    std::vector<int> inputs;     // tensor numbers
    int output = -1;             // tensor number: kLabel + 1 + index of the node
    std::uint32_t key = 0;       // of its randomness: its number before fusion
    std::string label{};         // in errors and traces: "dense1+relu1" after fusion, else the name
    bool training_only = false;  // a loss that is not the main one
  };

  // Sorts the layers so that each follows its inputs (else as given), infers shapes, and adds an accuracy layer beside
  // the main loss, the last given, where that compares with classes and there is none. Training minimizes the weighted
  // sum of all losses; at inference there is only the main one. Throws GraphError: no or two layers of a name, unknown
  // input, cycle, shapes that do not fit, an output nobody reads, no loss, logits that do not match the classes, tables
  // that do not match the ids; all of them at once, but none that follows from another. If there is none of these: no
  // parameters, or parameters that no loss depends on. A layer without a shape always makes it throw, perhaps without
  // an issue: what is wrong with that one, the caller knows.
  static Graph build(const InputDescription& input, const std::vector<LayerDescription>& layers);

  const InputDescription& input() const noexcept { return input_; }
  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  int tensors() const noexcept { return static_cast<int>(nodes_.size()) + 2; }
  // Shapes of every tensor for mini-batches of `batch` examples.
  std::vector<engine::Shape> shapes(std::int64_t batch) const;
  // Shapes of one node's inputs, picked from `shapes`.
  static std::vector<engine::Shape> input_shapes(const Node& node, const std::vector<engine::Shape>& shapes);

 private:
  friend Graph fuse_activations(const Graph& graph);  // dataflow/fusion.cc
  friend Graph fuse_sums(const Graph& graph);

  InputDescription input_;
  std::vector<Node> nodes_;
};

}  // namespace arbalest::dataflow
