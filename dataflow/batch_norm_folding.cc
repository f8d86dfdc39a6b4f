#include "dataflow/batch_norm_folding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "dataflow/fusion.h"
#include "dataflow/parameter_rules.h"

namespace arbalest::dataflow {

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

using TensorsByName = std::map<std::string, NamedTensor>;

NamedTensor take(TensorsByName& tensors, const std::string& name) { return std::move(tensors.extract(name).mapped()); }

// Replaces the four parameters of a batch norm, and makes the weights and the bias of the convolution before it.
void fold_pair(TensorsByName& tensors, const std::string& convolution, const std::string& normalization,
               float epsilon) {
  NamedTensor& weight = tensors.at(convolution + ".weight");
  const NamedTensor scale = take(tensors, normalization + ".weight");
  const NamedTensor shift = take(tensors, normalization + ".bias");
  const NamedTensor mean = take(tensors, normalization + ".running_mean");
  const NamedTensor variance = take(tensors, normalization + ".running_var");
  NamedTensor& bias = tensors[convolution + ".bias"];
  if (bias.values.empty()) bias = {convolution + ".bias", shift.shape, std::vector<float>(shift.values.size())};
  const std::size_t per_filter = weight.values.size() / shift.values.size();
  for (std::size_t filter = 0; filter < shift.values.size(); ++filter) {
    const double factor = scale.values[filter] / std::sqrt(static_cast<double>(variance.values[filter]) + epsilon);
    const double centered = static_cast<double>(bias.values[filter]) - mean.values[filter];
    bias.values[filter] = static_cast<float>(centered * factor + shift.values[filter]);
    for (std::size_t i = filter * per_filter; i < (filter + 1) * per_filter; ++i) {
      weight.values[i] = static_cast<float>(weight.values[i] * factor);
    }
  }
}

}  // namespace

BatchNormFolding::BatchNormFolding(const Graph& graph, const std::string& kept_layer) {
  for (const NamedParameter& parameter : named_parameters(graph)) {
    expected_.push_back({parameter.name, parameter.spec.shape});
  }
  const Graph fused = fuse(graph);
  std::vector<int> readers(at(fused.tensors()), 0);
  for (const Graph::Node& node : fused.nodes_) {
    for (const int input : node.inputs) ++readers[at(input)];
  }
  // by node: the layer that replaces a batch norm and the convolution before it
  std::vector<std::shared_ptr<const Layer>> both(fused.nodes_.size());
  std::vector<bool> is_folded(fused.nodes_.size(), false);
  for (std::size_t n = 0; n < fused.nodes_.size(); ++n) {
    const Graph::Node& node = fused.nodes_[n];
    const auto normalization = node.layer->normalization();
    const int input = node.inputs.empty() ? Graph::kImage : node.inputs[0];
    if (!normalization || node.name == kept_layer || input <= Graph::kLabel || readers[at(input)] != 1) continue;
    const std::size_t producer = at(input - Graph::kLabel - 1);
    both[n] = fused.nodes_[producer].layer->with_normalization(*normalization);
    if (both[n] == nullptr) continue;
    is_folded[producer] = true;
    pairs_.push_back({fused.nodes_[producer].name, node.name, normalization->epsilon});
  }

  std::vector<int> renumbered(at(fused.tensors()));
  renumbered[Graph::kLabel] = Graph::kLabel;
  folded_.input_ = fused.input_;
  for (std::size_t n = 0; n < fused.nodes_.size(); ++n) {
    if (is_folded[n]) continue;
    Graph::Node kept = fused.nodes_[n];
    if (both[n] != nullptr) {
      const Graph::Node& convolution = fused.nodes_[at(kept.inputs[0] - Graph::kLabel - 1)];
      kept.name = convolution.name;
      kept.label = convolution.label + "+" + kept.label;
      kept.layer = both[n];
      kept.rules = {};
      kept.inputs[0] = convolution.inputs[0];
    }
    for (int& input : kept.inputs) input = renumbered[at(input)];
    kept.output = renumbered[at(fused.nodes_[n].output)] = folded_.tensors();
    folded_.nodes_.push_back(std::move(kept));
  }
}

std::vector<NamedTensor> BatchNormFolding::fold(std::span<const NamedTensor> model) const {
  check_tensors(model, expected_);
  TensorsByName tensors;
  for (const NamedTensor& tensor : model) tensors.emplace(tensor.name, tensor);
  for (const Pair& pair : pairs_) fold_pair(tensors, pair.convolution, pair.normalization, pair.epsilon);
  std::vector<NamedTensor> folded;
  for (auto& [name, tensor] : tensors) folded.push_back(std::move(tensor));
  return folded;
}

}  // namespace arbalest::dataflow
