// Builds the list of layers of a zoo model, in the form of a job file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/fields/field_issues.h"

namespace arbalest::dataflow {

using LayerMessages = google::protobuf::RepeatedPtrField<v1::Layer>;

// Sides of a window, in pixels. A single number sets both.
struct Sides {
  Sides(int both) : height(both), width(both) {}  // NOLINT(google-explicit-constructor): {.kernel = 3}
  Sides(int of_height, int of_width) : height(of_height), width(of_width) {}

  int height;
  int width;
};

struct FilterOptions {
  Sides kernel;
  int stride = 1;
  Sides padding = 0;
  int groups = 1;
};

// Fields that a model does not set keep the schema's default. Each layer reads the layer added before it, unless from()
// names another input. The functions return the layer's message, so that a model can set further fields.
class ZooBuilder {
 public:
  // `path`: path of the model in v1::Model, "zoo.vgg". `input`: if it has no classes, the data is unknown, and the
  // layers must not be used.
  ZooBuilder(std::string path, const InputDescription& input, FieldIssues& issues);

  // Whether no issue was reported since the start. All options must be checked before the first layer is added.
  bool is_sound() const noexcept { return issues_.all().size() == issues_before_; }
  // Returns the entry of `choices` for `value`; without one, reports the known values and returns null.
  template <typename T>
  const T* choose(const std::string& field, int value, const std::map<int, T>& choices) {
    const auto found = choices.find(value);
    if (found != choices.end()) return &found->second;
    std::vector<int> known;
    for (const auto& [choice, meaning] : choices) known.push_back(choice);
    report_unknown(field, value, known);
    return nullptr;
  }
  // Requires images of at least this side: smaller ones do not fit the model's windows.
  void require_sides(std::int64_t least);

  // Requires data with this many columns of ids.
  void require_columns(std::size_t columns);

  // Returns the layers; none if any issue was reported.
  LayerMessages take_layers();

  // Sets the input of the next layer.
  ZooBuilder& from(const std::string& tensor);
  // Name of the last layer; "image" at first.
  const std::string& last() const noexcept { return last_; }

  v1::Conv& conv(const std::string& name, int filters, const FilterOptions& filter);
  // Adds a convolution without bias, and batch normalization.
  v1::BatchNorm& conv_bn(const std::string& name, const std::string& bn_name, int filters, const FilterOptions& filter);
  v1::BatchNorm& batch_norm(const std::string& name);
  v1::Pool& max_pool(const std::string& name, const FilterOptions& window);
  v1::Pool& average_pool(const std::string& name, const FilterOptions& window);
  void global_average_pool(const std::string& name);
  v1::Dense& dense(const std::string& name, int units);
  void relu(const std::string& name);
  void relu6(const std::string& name);
  void local_response_norm(const std::string& name);
  // Adds no layer if the ratio is 0.
  void dropout(const std::string& name, float ratio);
  void padded_shortcut(const std::string& name, int channels, int stride);
  void add(const std::string& name, const std::string& a, const std::string& b);
  void concat(const std::string& name, const std::vector<std::string>& inputs);

  // Adds a table with one row for each id in the data's column.
  v1::Embedding& embedding(const std::string& name, int width, int column);
  // The inner product gets a bias.
  v1::InnerProduct& inner_product(const std::string& name, const std::string& a, const std::string& b);
  // Adds the model's loss, named "loss", for the last layer's predictions.
  void predict();

  // Number of classes of the data.
  int classes() const noexcept { return static_cast<int>(input_.classes()); }
  // Adds a classifier's loss for the last layer's outputs, one for each class. The model's own is named "loss".
  v1::SoftmaxCrossEntropy& add_loss(const std::string& name);
  // Adds a dense layer with one unit per class and Xavier's initial weights, and the model's loss, named "loss".
  v1::Dense& classify(const std::string& name);
  // Does the same with an auxiliary loss.
  void auxiliary_classify(const std::string& name, const std::string& loss, float weight);

  // Adds a layer whose kind the caller chooses. For kinds that have no function above.
  v1::Layer& add_layer(const std::string& name);

 private:
  v1::Layer& add_multi_input(const std::string& name, const std::vector<std::string>& inputs);
  void report_unknown(const std::string& field, int value, const std::vector<int>& known);

  std::string path_;
  const InputDescription& input_;
  FieldIssues& issues_;
  std::size_t issues_before_;
  LayerMessages layers_;
  std::string last_ = "image";
};

// Gives a layer the initial weights of Caffe's models.
template <typename Message>
void start_with_xavier(Message& layer) {
  layer.mutable_weight()->mutable_initializer()->mutable_xavier();
}

}  // namespace arbalest::dataflow
