#include "dataflow/split/split_graph.h"

#include <algorithm>

#include "dataflow/layers/flatten.h"
#include "dataflow/split/dense_shard.h"
#include "dataflow/split/exchange_layer.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ExchangeKind;

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// Null if the node is no dense layer that is split.
const DenseLayer* split_dense(const Graph::Node& node) {
  const auto* dense = dynamic_cast<const DenseLayer*>(node.layer.get());
  return dense != nullptr && dense->options().split != DenseSplit::kNone ? dense : nullptr;
}

std::int64_t features_of(const Graph::Node& node, const std::vector<engine::Shape>& shapes) {
  return shapes[at(node.inputs[0])].elements_per_example();
}

}  // namespace

std::vector<SplitLayer> split_layers(const Graph& graph) {
  const std::vector<engine::Shape> shapes = graph.shapes(1);
  std::vector<SplitLayer> layers;
  for (const Graph::Node& node : graph.nodes()) {
    const DenseLayer* dense = split_dense(node);
    if (dense == nullptr) continue;
    const DenseSplit split = dense->options().split;
    const std::int64_t length = split == DenseSplit::kColumns ? dense->options().units : features_of(node, shapes);
    layers.push_back({node.name, split, length});
  }
  return layers;
}

class GraphSplitter {
 public:
  GraphSplitter(const Graph& whole, const engine::ExchangeMember& place)
      : whole_(whole),
        shapes_(whole.shapes(1)),
        place_(place),
        block_{place.rank, place.ranks()},
        forms_(at(whole.tensors())) {
    split_.input_ = whole.input_;
    split_.metrics_ = whole.metrics_;
    for (int input = 0; input < whole.inputs(); ++input) forms_[at(input)].own = input;
  }

  Graph split() {
    for (const Graph::Node& node : whole_.nodes()) {
      if (const DenseLayer* dense = split_dense(node)) {
        add_dense(node, dense->options());
      } else if (!add_on_columns(node)) {
        add_on_examples(node);
      }
    }
    return std::move(split_);
  }

 private:
  // Tensor numbers in the split graph of one tensor of the whole graph; -1: that form does not exist.
  struct Forms {
    int own = -1;       // [b, ...]
    int flat = -1;      // [b, n]
    int gathered = -1;  // [P b, n]
    int columns = -1;   // [P b, n / P]
  };

  int add(Graph::Node node) {
    node.output = split_.tensors();
    split_.nodes_.push_back(std::move(node));
    return split_.nodes_.back().output;
  }

  // A layer that `reader` needs before it.
  int add_before(const Graph::Node& reader, std::shared_ptr<const Layer> layer, int input, const char* what) {
    return add({.name = reader.name,
                .layer = std::move(layer),
                .inputs = {input},
                .key = reader.key,
                .label = reader.label + " " + what,
                .training_only = reader.training_only});
  }

  int exchange(const Graph::Node& reader, ExchangeKind kind, int input, const char* what) {
    return add_before(reader, std::make_shared<ExchangeLayer>(kind, place_), input, what);
  }

  int own(int tensor, const Graph::Node& reader) {
    Forms& forms = forms_[at(tensor)];
    if (forms.own < 0) forms.own = exchange(reader, ExchangeKind::kToExamples, forms.columns, "columns to examples");
    return forms.own;
  }

  int flat(int tensor, const Graph::Node& reader) {
    const int whole = own(tensor, reader);
    Forms& forms = forms_[at(tensor)];
    if (forms.flat < 0) {
      const bool is_flat = shapes_[at(tensor)].rank() == 2;
      forms.flat = is_flat ? whole : add_before(reader, std::make_shared<FlattenLayer>(), whole, "flatten");
    }
    return forms.flat;
  }

  int gathered(int tensor, const Graph::Node& reader) {
    const int input = flat(tensor, reader);
    Forms& forms = forms_[at(tensor)];
    if (forms.gathered < 0) forms.gathered = exchange(reader, ExchangeKind::kGather, input, "gather examples");
    return forms.gathered;
  }

  int columns(int tensor, const Graph::Node& reader) {
    if (forms_[at(tensor)].columns < 0) {
      const int input = flat(tensor, reader);
      forms_[at(tensor)].columns = exchange(reader, ExchangeKind::kToColumns, input, "examples to columns");
    }
    return forms_[at(tensor)].columns;
  }

  void add_dense(const Graph::Node& node, const DenseLayer::Options& options) {
    const bool by_columns = options.split == DenseSplit::kColumns;
    const std::int64_t features = features_of(node, shapes_);
    ARBALEST_CHECK((by_columns ? options.units : features) % block_.ranks == 0);
    Graph::Node shard = node;
    shard.inputs = {by_columns ? gathered(node.inputs[0], node) : columns(node.inputs[0], node)};
    shard.layer = std::make_shared<DenseShardLayer>(options, features, block_);
    if (by_columns) {
      forms_[at(node.output)].columns = add(std::move(shard));
      return;
    }
    Graph::Node sum = node;
    if (!node.rules.empty()) shard.rules.resize(1);
    sum.inputs = {add(std::move(shard))};
    sum.label += " sum over devices";
    if (!node.rules.empty()) sum.rules.erase(sum.rules.begin());
    std::optional<ParameterSpec> bias;
    if (options.has_bias) bias = bias_spec({options.units}, {features, options.units}, options.bias);
    sum.layer = std::make_shared<ExchangeLayer>(ExchangeKind::kScatterSums, place_, std::move(bias));
    forms_[at(node.output)].own = add(std::move(sum));
  }

  // If the input exists only as columns, runs the layer on the columns. Returns false if it cannot.
  bool add_on_columns(const Graph::Node& node) {
    const Forms& input = forms_[at(node.inputs[0])];
    if (node.inputs.size() != 1 || input.own >= 0) return false;
    std::shared_ptr<const Layer> layer = node.layer->on_columns(block_);
    if (layer == nullptr) return false;
    Graph::Node moved = node;
    moved.layer = std::move(layer);
    moved.inputs = {input.columns};
    forms_[at(node.output)].columns = add(std::move(moved));
    return true;
  }

  void add_on_examples(const Graph::Node& node) {
    Graph::Node kept = node;
    for (int& input : kept.inputs) input = own(input, node);
    forms_[at(node.output)].own = add(std::move(kept));
  }

  const Graph& whole_;
  const std::vector<engine::Shape> shapes_;  // of the whole graph
  const engine::ExchangeMember place_;
  const engine::ColumnBlock block_;
  std::vector<Forms> forms_;  // by tensor of the whole graph
  Graph split_;
};

Graph split_graph(const Graph& graph, const engine::ExchangeMember& place) {
  return GraphSplitter(graph, place).split();
}

}  // namespace arbalest::dataflow
