#include "dataflow/models/zoo/zoo_builder.h"

#include <utility>

namespace arbalest::dataflow {

namespace {

// Writes the kernel in the shortest form.
template <typename Message>
void set_kernel(Message& message, const Sides& kernel) {
  if (kernel.height == kernel.width) {
    message.set_kernel(kernel.height);
  } else {
    message.set_kernel_height(kernel.height);
    message.set_kernel_width(kernel.width);
  }
}

template <typename Message>
void set_padding(Message& message, const Sides& padding) {
  if (padding.height != padding.width) {
    message.set_padding_height(padding.height);
    message.set_padding_width(padding.width);
  } else if (padding.height != 0) {
    message.set_padding(padding.height);
  }
}

void set_pool(v1::Pool& message, const FilterOptions& window) {
  set_kernel(message, window.kernel);
  message.set_stride(window.stride);
  set_padding(message, window.padding);
}

}  // namespace

ZooBuilder::ZooBuilder(std::string path, const InputDescription& input, FieldIssues& issues)
    : path_(std::move(path)), input_(input), issues_(issues), issues_before_(issues.all().size()) {}

void ZooBuilder::require_sides(std::int64_t least) {
  if (!input_.is_known() || input_.has_ids()) return;
  const engine::Shape& image = input_.image();
  if (image.rank() == 3 && image[1] >= least && image[2] >= least) return;
  issues_.add_another(path_, fmt::format("{} needs images of {}x{} pixels or larger; the data has images of {}",
                                         path_.substr(path_.rfind('.') + 1), least, least, to_string(image)));
}

void ZooBuilder::require_columns(std::size_t columns) {
  if (!input_.is_known() || input_.ids().size() == columns) return;
  issues_.add_another(path_, fmt::format("{} needs data {{ ratings {{ ... }} }} with {} columns of ids; {}",
                                         path_.substr(path_.rfind('.') + 1), columns,
                                         input_.has_ids() ? fmt::format("the data has {}", input_.ids().size())
                                                          : "the data has images"));
}

LayerMessages ZooBuilder::take_layers() {
  if (!is_sound()) return {};
  return std::move(layers_);
}

ZooBuilder& ZooBuilder::from(const std::string& tensor) {
  last_ = tensor;
  return *this;
}

v1::Conv& ZooBuilder::conv(const std::string& name, int filters, const FilterOptions& filter) {
  v1::Conv& conv = *add_layer(name).mutable_conv();
  conv.set_filters(filters);
  set_kernel(conv, filter.kernel);
  if (filter.stride != 1) conv.set_stride(filter.stride);
  set_padding(conv, filter.padding);
  if (filter.groups != 1) conv.set_groups(filter.groups);
  return conv;
}

v1::BatchNorm& ZooBuilder::conv_bn(const std::string& name, const std::string& bn_name, int filters,
                                   const FilterOptions& filter) {
  conv(name, filters, filter).set_use_bias(false);
  return batch_norm(bn_name);
}

v1::BatchNorm& ZooBuilder::batch_norm(const std::string& name) { return *add_layer(name).mutable_batch_norm(); }

v1::Pool& ZooBuilder::max_pool(const std::string& name, const FilterOptions& window) {
  v1::Pool& pool = *add_layer(name).mutable_max_pool();
  set_pool(pool, window);
  return pool;
}

v1::Pool& ZooBuilder::average_pool(const std::string& name, const FilterOptions& window) {
  v1::Pool& pool = *add_layer(name).mutable_average_pool();
  set_pool(pool, window);
  return pool;
}

void ZooBuilder::global_average_pool(const std::string& name) { add_layer(name).mutable_global_average_pool(); }

v1::Dense& ZooBuilder::dense(const std::string& name, int units) {
  v1::Dense& dense = *add_layer(name).mutable_dense();
  dense.set_units(units);
  return dense;
}

void ZooBuilder::relu(const std::string& name) { add_layer(name).mutable_relu(); }

void ZooBuilder::relu6(const std::string& name) { add_layer(name).mutable_relu6(); }

void ZooBuilder::local_response_norm(const std::string& name) { add_layer(name).mutable_local_response_norm(); }

void ZooBuilder::dropout(const std::string& name, float ratio) {
  if (ratio != 0.0F) add_layer(name).mutable_dropout()->set_ratio(ratio);
}

void ZooBuilder::padded_shortcut(const std::string& name, int channels, int stride) {
  v1::PaddedShortcut& shortcut = *add_layer(name).mutable_padded_shortcut();
  shortcut.set_channels(channels);
  shortcut.set_stride(stride);
}

void ZooBuilder::add(const std::string& name, const std::string& a, const std::string& b) {
  add_multi_input(name, {a, b}).mutable_add();
}

void ZooBuilder::concat(const std::string& name, const std::vector<std::string>& inputs) {
  add_multi_input(name, inputs).mutable_concat();
}

v1::Embedding& ZooBuilder::embedding(const std::string& name, int width, int column) {
  v1::Embedding& table = *from("ids").add_layer(name).mutable_embedding();
  const auto at = static_cast<std::size_t>(column);
  if (at < input_.ids().size()) table.set_rows(static_cast<int>(input_.ids()[at]));
  table.set_width(width);
  table.set_column(column);
  return table;
}

v1::InnerProduct& ZooBuilder::inner_product(const std::string& name, const std::string& a, const std::string& b) {
  v1::InnerProduct& product = *add_multi_input(name, {a, b}).mutable_inner_product();
  product.set_use_bias(true);
  return product;
}

void ZooBuilder::predict() {
  v1::Layer& loss = add_layer("loss");
  loss.add_input("label");
  loss.mutable_squared_error();
}

v1::Dense& ZooBuilder::classify(const std::string& name) {
  v1::Dense& logits = dense(name, classes());
  start_with_xavier(logits);
  add_loss("loss");
  return logits;
}

void ZooBuilder::auxiliary_classify(const std::string& name, const std::string& loss, float weight) {
  start_with_xavier(dense(name, classes()));
  add_loss(loss).set_weight(weight);
}

v1::Layer& ZooBuilder::add_multi_input(const std::string& name, const std::vector<std::string>& inputs) {
  v1::Layer& layer = add_layer(name);
  layer.mutable_input()->Assign(inputs.begin(), inputs.end());
  return layer;
}

v1::SoftmaxCrossEntropy& ZooBuilder::add_loss(const std::string& name) {
  v1::Layer& loss = add_layer(name);
  loss.add_input("label");
  return *loss.mutable_softmax_cross_entropy();
}

void ZooBuilder::report_unknown(const std::string& field, int value, const std::vector<int>& known) {
  issues_.add(path_ + "." + field, fmt::format("{} must be one of {}, not {}", field, fmt::join(known, ", "), value));
}

v1::Layer& ZooBuilder::add_layer(const std::string& name) {
  v1::Layer& layer = *layers_.Add();
  layer.set_name(name);
  layer.add_input(last_);
  last_ = name;
  return layer;
}

}  // namespace arbalest::dataflow
