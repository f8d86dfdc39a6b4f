#include "interchange/import/graph/layer_list.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "dataflow/models/fields/field_issues.h"
#include "dataflow/models/layer_reader.h"
#include "dataflow/models/model_reader.h"
#include "engine/base/error.h"
#include "interchange/import/graph/node_reader.h"
#include "messages/text_encoding.h"

namespace arbalest::jobs {

using engine::Shape;

namespace {

// Reads the message as a job's reader would.
std::shared_ptr<const dataflow::Layer> read(const ImportedLayer& layer) {
  v1::Model model;
  v1::Layer& message = *model.add_layers();
  message = layer.message;
  message.set_name(layer.name);
  dataflow::fill_defaults(model);
  dataflow::FieldIssues issues;
  dataflow::LayerDescription description = dataflow::read_layer(model.layers(0), "layer", issues);
  if (!issues.empty()) refuse("{}", issues.all().front().message);
  return description.layer;
}

// A job refuses larger outputs, too. Layers that read such an output do not overflow.
void check_size(const Shape& output) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  std::int64_t elements = 1;
  for (const std::int64_t extent : output) {
    if (extent > kMost / elements) refuse("its output, {}, has more than {} elements", to_string(output), kMost);
    elements *= std::max<std::int64_t>(extent, 1);
  }
}

void check_weights(const ImportedLayer& layer, const std::vector<dataflow::ParameterSpec>& specs) {
  ARBALEST_CHECK(specs.size() == layer.weights.size());
  for (std::size_t p = 0; p < specs.size(); ++p) {
    const dataflow::NamedTensor& tensor = layer.weights[p];
    ARBALEST_CHECK(tensor.name == specs[p].name);
    if (tensor.shape != specs[p].shape) {
      refuse("its {} has the shape {}, not {}", tensor.name, to_string(tensor.shape), to_string(specs[p].shape));
    }
  }
}

}  // namespace

Shape LayerList::shape_of(int source) const {
  return source == kImageSource ? input_ : layers_[static_cast<std::size_t>(source)].output;
}

void LayerList::check(ImportedLayer& layer) const {
  const std::shared_ptr<const dataflow::Layer> description = read(layer);
  std::vector<Shape> inputs;
  for (const int source : layer.sources) inputs.push_back(shape_of(source));
  try {
    layer.output = description->output_shape(inputs);
    check_size(layer.output);
    check_weights(layer, description->parameters(inputs));
  } catch (const engine::Error& error) {
    if (error.kind() == engine::ErrorKind::kInternal) throw;
    throw NodeRefused(error.what());
  }
}

Tensor LayerList::add(ImportedLayer layer, const std::vector<Tensor>& inputs) {
  for (const Tensor& input : inputs) layer.sources.push_back(input.source);
  check(layer);
  // Layers that share weights get copies.
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  for (const dataflow::NamedTensor& tensor : layer.weights) weights_ += tensor.shape.elements();
  if (weights_ > kMost) refuse("the layers' weights have more than {} elements", kMost);
  layers_.push_back(std::move(layer));
  return {.source = static_cast<int>(layers_.size()) - 1, .shape = layers_.back().output};
}

Tensor LayerList::replace(int index, ImportedLayer layer) {
  layer.sources = at(index).sources;
  check(layer);
  at(index) = std::move(layer);
  return {.source = index, .shape = at(index).output};
}

LayerList::Named LayerList::named(const std::string& input) && {
  Named result;
  std::set<std::string> taken = {"image", "ids", "label"};
  std::map<std::string, int> repetitions;
  for (const ImportedLayer& layer : layers_) {
    const std::string written = printable(layer.name);
    std::string name = written;
    if (!layer.is_dropped) {
      while (!taken.insert(name).second) name = fmt::format("{}_{}", written, ++repetitions[written] + 1);
    }
    result.names.push_back(name);
  }
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    ImportedLayer& layer = layers_[n];
    if (layer.is_dropped) continue;
    v1::Layer& message = result.layers.emplace_back();
    message.set_name(result.names[n]);
    for (const int source : layer.sources) {
      message.add_input(source == kImageSource ? input : result.names[static_cast<std::size_t>(source)]);
    }
    message.MergeFrom(layer.message);
    for (dataflow::NamedTensor& tensor : layer.weights) {
      tensor.name = result.names[n] + "." + tensor.name;
      result.weights.push_back(std::move(tensor));
    }
  }
  return result;
}

}  // namespace arbalest::jobs
