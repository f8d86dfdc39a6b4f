#include "dataflow/folding/batch_norm_folding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "dataflow/layers/batch_norm.h"
#include "dataflow/layers/images/conv2d.h"
#include "dataflow/parameter_rules.h"

namespace arbalest::dataflow {

namespace {

using TensorsByName = std::map<std::string, NamedTensor>;

NamedTensor take(TensorsByName& tensors, const std::string& name) { return std::move(tensors.extract(name).mapped()); }

// Takes the four parameters of a batch norm, and makes the weights and the bias of the convolution before it.
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
    const double deviation = std::sqrt(static_cast<double>(variance.values[filter]) + static_cast<double>(epsilon));
    const double factor = static_cast<double>(scale.values[filter]) / deviation;
    const double centered = static_cast<double>(bias.values[filter]) - static_cast<double>(mean.values[filter]);
    bias.values[filter] = static_cast<float>(centered * factor + static_cast<double>(shift.values[filter]));
    for (std::size_t i = filter * per_filter; i < (filter + 1) * per_filter; ++i) {
      weight.values[i] = static_cast<float>(static_cast<double>(weight.values[i]) * factor);
    }
  }
}

}  // namespace

BatchNormFolding::BatchNormFolding(const Graph& graph, const std::string& kept) {
  for (const NamedParameter& parameter : named_parameters(graph)) {
    expected_.push_back({parameter.name, parameter.spec.shape});
  }
  std::vector<int> readers(static_cast<std::size_t>(graph.tensors()), 0);
  for (const Graph::Node& node : graph.nodes()) {
    for (const int input : node.inputs) ++readers[static_cast<std::size_t>(input)];
  }
  std::vector<std::string> names;  // by tensor: the name that layers call it by
  for (const TensorDescription& input : graph.input().tensors) names.push_back(input.name);
  std::vector<LayerDescription> layers;
  for (const Graph::Node& node : graph.nodes()) {
    names.push_back(node.name);
    std::vector<std::string> inputs;
    for (const int input : node.inputs) inputs.push_back(names[static_cast<std::size_t>(input)]);
    const auto* normalization = dynamic_cast<const BatchNormLayer*>(node.layer.get());
    if (normalization != nullptr && node.name != kept && readers[static_cast<std::size_t>(node.inputs[0])] == 1) {
      const auto before = std::ranges::find(layers, inputs[0], &LayerDescription::name);
      const auto* convolution =
          before == layers.end() ? nullptr : dynamic_cast<const Conv2dLayer*>(before->layer.get());
      if (convolution != nullptr && before->name != kept) {
        before->layer = convolution->with_bias();
        names.back() = before->name;
        pairs_.push_back({before->name, node.name, normalization->epsilon()});
        continue;
      }
    }
    layers.push_back({node.name, std::move(inputs), node.layer});
  }
  folded_ = Graph::build(graph.input(), layers);
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
