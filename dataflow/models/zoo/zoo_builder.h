// The layers of a model of the zoo while they are written down, as a job file would list them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/field_issues.h"

namespace arbalest::dataflow {

using LayerMessages = google::protobuf::RepeatedPtrField<v1::Layer>;

// Of a window, in pixels; one number stands for both directions.
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

inline constexpr Range<float> kDropoutRatio{0.0F, 1.0F, false, true};

// What is not said of a layer has the default of the schema. Every layer is added behind the last one, unless from()
// names another input; its message is returned for what only one model says.
class ZooBuilder {
 public:
  // `path`: of the model in v1::Model, "zoo.vgg". `input`: without classes, nothing is known of the data, and the
  // layers are not to be used.
  ZooBuilder(std::string path, const InputDescription& input, FieldIssues& issues);

  // What is wrong with the options. All of them are asked for before the first layer.
  template <typename T>
  void check_range(const std::string& field, T value, const Range<T>& range) {
    issues_.add(path_ + "." + field, out_of_range(field, value, range));
  }
  // What `choices` has for `value`, or null if nothing.
  template <typename T>
  const T* choose(const std::string& field, int value, const std::map<int, T>& choices) {
    const auto found = choices.find(value);
    if (found != choices.end()) return &found->second;
    std::vector<int> known;
    for (const auto& [choice, meaning] : choices) known.push_back(choice);
    report_unknown(field, value, known);
    return nullptr;
  }
  // A model whose windows would stand out of smaller images.
  void require_sides(std::int64_t least);

  // A model of so many columns of ids.
  void require_columns(std::size_t columns);

  // No layers if anything was wrong.
  LayerMessages take_layers();

  // The next layer's input.
  ZooBuilder& from(const std::string& tensor);
  // The name of the last layer, at first "image".
  const std::string& last() const noexcept { return last_; }

  v1::Conv& conv(const std::string& name, int filters, const FilterOptions& filter);
  // A convolution without bias, and batch normalization.
  v1::BatchNorm& conv_bn(const std::string& name, const std::string& bn_name, int filters, const FilterOptions& filter);
  v1::BatchNorm& batch_norm(const std::string& name);
  v1::Pool& max_pool(const std::string& name, const FilterOptions& window);
  v1::Pool& average_pool(const std::string& name, const FilterOptions& window);
  void global_average_pool(const std::string& name);
  v1::Dense& dense(const std::string& name, int units);
  void relu(const std::string& name);
  void local_response_norm(const std::string& name);
  // No layer if the ratio is 0.
  void dropout(const std::string& name, float ratio);
  void padded_shortcut(const std::string& name, int channels, int stride);
  void add(const std::string& name, const std::string& a, const std::string& b);
  void concat(const std::string& name, const std::vector<std::string>& inputs);

  // A table with a row for each id of the data's column.
  v1::Embedding& embedding(const std::string& name, int width, int column);
  // With a bias.
  v1::InnerProduct& inner_product(const std::string& name, const std::string& a, const std::string& b);
  // The model's loss "loss" of what the last layer predicts.
  void predict();

  // A dense layer of as many units as there are classes, with Xavier's initial weights, and the model's loss "loss".
  v1::Dense& classify(const std::string& name);
  // The same with a loss that is not the main one.
  void auxiliary_classify(const std::string& name, const std::string& loss, float weight);

 private:
  v1::Layer& add_layer(const std::string& name);
  v1::Layer& add_joining(const std::string& name, const std::vector<std::string>& inputs);
  v1::SoftmaxCrossEntropy& add_loss(const std::string& name);
  void report_unknown(const std::string& field, int value, const std::vector<int>& known);

  std::string path_;
  const InputDescription& input_;
  FieldIssues& issues_;
  std::size_t issues_before_;
  LayerMessages layers_;
  std::string last_ = "image";
};

// The same initial weights as Caffe's models.
template <typename Message>
void start_with_xavier(Message& layer) {
  layer.mutable_weight()->mutable_initializer()->mutable_xavier();
}

}  // namespace arbalest::dataflow
