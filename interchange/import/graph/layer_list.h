// The layers of a model that is being imported, with their weights.
#pragma once

#include <string>
#include <vector>

#include "arbalest/v1/model.pb.h"
#include "dataflow/parameter_layout.h"
#include "interchange/import/graph/value.h"

namespace arbalest::jobs {

struct ImportedLayer {
  std::string name;                                 // wanted; named() makes it unique
  v1::Layer message = {};                           // without name and inputs
  std::vector<int> sources = {};                    // indices of layers, or kImageSource
  std::vector<dataflow::NamedTensor> weights = {};  // "weight", "bias" …
  engine::Shape output = {};                        // for one example
  bool is_dropped = false;                          // another layer does its work
};

class LayerList {
 public:
  // `input`: shape of one example of the model's input.
  explicit LayerList(engine::Shape input) : input_(input) {}

  // Adds a layer that reads `inputs`. Throws NodeRefused if its fields, inputs or weights do not fit, with the reason.
  Tensor add(ImportedLayer layer, const std::vector<Tensor>& inputs);
  // Replaces a layer by another one with the same inputs, which has another shape. Throws as add() does.
  Tensor replace(int index, ImportedLayer layer);

  ImportedLayer& at(int index) { return layers_[static_cast<std::size_t>(index)]; }
  const std::vector<ImportedLayer>& all() const noexcept { return layers_; }
  const engine::Shape& input_shape() const noexcept { return input_; }
  engine::Shape shape_of(int source) const;

  // The layers as messages of a job, with unique names, and their weights: "conv1.weight". `input`: "image" or "ids".
  struct Named {
    std::vector<v1::Layer> layers;
    std::vector<dataflow::NamedTensor> weights;
    std::vector<std::string> names;  // by index
  };
  Named named(const std::string& input) &&;

 private:
  // Sets the layer's output.
  void check(ImportedLayer& layer) const;

  engine::Shape input_;
  std::vector<ImportedLayer> layers_;
  std::int64_t weights_ = 0;  // elements
};

}  // namespace arbalest::jobs
