// The layers of a model of the zoo while they are written down, as a job file would list them.
#pragma once

#include <cstdint>
#include <initializer_list>
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
};

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
  // A model whose windows would stand out of smaller images.
  void require_sides(std::int64_t least);

  // No layers if anything was wrong.
  LayerMessages take_layers();

  // The next layer's input.
  ZooBuilder& from(const std::string& tensor);
  // The name of the last layer, at first "image".
  const std::string& last() const noexcept { return last_; }

  v1::Conv& conv(const std::string& name, int filters, const FilterOptions& filter);
  v1::Pool& max_pool(const std::string& name, const FilterOptions& window);
  v1::Dense& dense(const std::string& name, int units);
  void relu(const std::string& name);
  // A dense layer of as many units as there are classes, with Xavier's initial weights, and the model's loss.
  v1::Dense& classify(const std::string& name);

 private:
  v1::Layer& add(const std::string& name);

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
