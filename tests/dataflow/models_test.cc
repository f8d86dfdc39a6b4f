// The zoo, and layers read from the model schema.
#include <functional>

#include <fmt/format.h>

#include "arbalest/v1/model.pb.h"
#include "dataflow/models/lenet.h"
#include "dataflow/models/logistic_regression.h"
#include "dataflow/models/mlp.h"
#include "dataflow/models/model_defaults.h"
#include "dataflow/models/model_reader.h"
#include "tests/support/catch.h"

namespace arbalest::dataflow {

namespace {

const InputDescription kMnist{{1, 28, 28}, 10};

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  const auto shapes = graph.shapes(1);
  for (const Graph::Node& node : graph.nodes()) {
    for (const ParameterSpec& spec : node.layer->parameters(Graph::input_shapes(node, shapes))) {
      count += spec.shape.elements();
    }
  }
  return count;
}

std::vector<std::string> shapes_of(const Graph& graph, std::int64_t batch) {
  std::vector<std::string> texts;
  for (const engine::Shape& shape : graph.shapes(batch)) texts.push_back(to_string(shape));
  return texts;
}

// Reads a model of one layer, which must be right.
std::shared_ptr<const Layer> read_one(const v1::Layer& layer) {
  v1::Model model;
  *model.add_layers() = layer;
  fill_defaults(model);
  FieldIssues issues;
  const auto layers = read_model(model, kMnist, issues);
  for (const FieldIssue& issue : issues.all()) UNSCOPED_INFO(issue.path + ": " + issue.message);
  REQUIRE(issues.empty());
  REQUIRE(layers.size() == 1);
  return layers[0].layer;
}

}  // namespace

TEST_CASE("LeNet is Caffe's") {
  const Graph graph = Graph::build(kMnist, lenet(10));
  CHECK(parameter_count(graph) == 431080);
  CHECK(shapes_of(graph, 2) == std::vector<std::string>{"2x1x28x28", "2", "2x20x24x24", "2x20x12x12", "2x50x8x8",
                                                        "2x50x4x4", "2x500", "2x500", "2x10", "1", "1"});
  for (const Graph::Node& node : graph.nodes()) {
    const auto shapes = graph.shapes(1);
    const auto specs = node.layer->parameters(Graph::input_shapes(node, shapes));
    if (specs.empty()) continue;
    CHECK(specs[0].initializer.kind == Initializer::Kind::kXavier);
    CHECK(specs[1].initializer.kind == Initializer::Kind::kConstant);
  }
}

TEST_CASE("logistic regression is one dense layer") {
  const Graph graph = Graph::build(kMnist, logistic_regression(10));
  CHECK(parameter_count(graph) == 7850);
  CHECK(graph.nodes()[0].layer->kind() == "dense");
}

TEST_CASE("a multilayer perceptron has the widths that it is given") {
  const std::vector<std::int64_t> hidden{256, 128};
  CHECK(parameter_count(Graph::build(kMnist, mlp(hidden, 10))) == 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  CHECK(parameter_count(Graph::build(kMnist, mlp({}, 10))) == 7850);
}

TEST_CASE("the zoo follows the number of classes") {
  const InputDescription input{{3, 32, 32}, 100};
  for (const auto& layers : {lenet(100), logistic_regression(100), mlp(std::vector<std::int64_t>{8}, 100)}) {
    const Graph graph = Graph::build(input, layers);
    CHECK(graph.shapes(1)[static_cast<std::size_t>(graph.nodes().back().inputs[0])] == engine::Shape{1, 100});
  }
}

TEST_CASE("every kind of layer is read as what it is") {
  const auto kind_of = [](auto set) {
    v1::Layer layer;
    layer.set_name("a");
    set(layer);
    return read_one(layer)->kind();
  };
  CHECK(kind_of([](v1::Layer& layer) {
          layer.mutable_conv()->set_filters(2);
          layer.mutable_conv()->set_kernel(3);
        }) == "conv");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_max_pool()->set_kernel(2); }) == "max_pool");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_average_pool()->set_kernel(2); }) == "average_pool");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_dense()->set_units(2); }) == "dense");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_flatten(); }) == "flatten");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_relu(); }) == "relu");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_tanh(); }) == "tanh");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_sigmoid(); }) == "sigmoid");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_local_response_norm(); }) == "local_response_norm");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_leaky_relu(); }) == "leaky_relu");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_gelu(); }) == "gelu");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_silu(); }) == "silu");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_dropout(); }) == "dropout");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_softmax(); }) == "softmax");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_softmax_cross_entropy(); }) == "softmax_cross_entropy");
  CHECK(kind_of([](v1::Layer& layer) { layer.mutable_accuracy(); }) == "accuracy");
  // A kind that is added to the schema has to be added here.
  CHECK(v1::Layer::descriptor()->FindOneofByName("kind")->field_count() == 16);
}

TEST_CASE("windows are read in both directions, with their defaults") {
  const engine::Shape image{2, 3, 28, 28};
  v1::Layer layer;
  layer.mutable_conv()->set_filters(4);
  layer.mutable_conv()->set_kernel_height(3);
  layer.mutable_conv()->set_kernel_width(5);
  CHECK(read_one(layer)->output_shape({&image, 1}) == engine::Shape{2, 4, 26, 24});
  layer.mutable_conv()->set_padding_height(1);
  layer.mutable_conv()->set_padding_width(2);
  layer.mutable_conv()->set_stride(2);
  CHECK(read_one(layer)->output_shape({&image, 1}) == engine::Shape{2, 4, 14, 14});
  layer.mutable_max_pool()->set_kernel(3);
  CHECK(read_one(layer)->output_shape({&image, 1}) == engine::Shape{2, 3, 9, 9});
  layer.mutable_max_pool()->set_stride_height(1);
  layer.mutable_max_pool()->set_stride_width(5);
  CHECK(read_one(layer)->output_shape({&image, 1}) == engine::Shape{2, 3, 26, 6});
}

TEST_CASE("padding_mode SAME gives an output of input / stride, rounded up") {
  const auto shape_of = [](const std::function<void(v1::Layer&)>& fill, engine::Shape image) {
    v1::Layer layer;
    fill(layer);
    return read_one(layer)->output_shape({&image, 1});
  };
  const auto conv = [](int kernel, int stride, int dilation) {
    return [=](v1::Layer& layer) {
      layer.mutable_conv()->set_filters(4);
      layer.mutable_conv()->set_kernel(kernel);
      layer.mutable_conv()->set_stride(stride);
      layer.mutable_conv()->set_dilation(dilation);
      layer.mutable_conv()->set_padding_mode(v1::Padding::SAME);
    };
  };
  CHECK(shape_of(conv(3, 2, 1), {2, 3, 224, 7}) == engine::Shape{2, 4, 112, 4});
  CHECK(shape_of(conv(1, 3, 1), {2, 3, 4, 5}) == engine::Shape{2, 4, 2, 2});
  CHECK(shape_of(conv(5, 1, 3), {2, 3, 4, 5}) == engine::Shape{2, 4, 4, 5});
  const auto pool = [](v1::Layer& layer) {
    layer.mutable_average_pool()->set_kernel(3);
    layer.mutable_average_pool()->set_stride(2);
    layer.mutable_average_pool()->set_padding_mode(v1::Padding::SAME);
  };
  CHECK(shape_of(pool, {2, 3, 9, 8}) == engine::Shape{2, 3, 5, 4});
}

TEST_CASE("SAME of a kernel of 3 with stride 2 pads an even image below and to the right only, an odd one evenly") {
  v1::Layer layer;
  layer.mutable_conv()->set_filters(4);
  layer.mutable_conv()->set_kernel(3);
  layer.mutable_conv()->set_stride(2);
  layer.mutable_conv()->set_padding_mode(v1::Padding::SAME);
  const engine::Layout image({2, 3, 8, 9}, engine::DType::kFloat32, 0, nullptr);
  const auto spec = std::get<engine::Conv2dSpec>(read_one(layer)->operator_spec({&image, 1}, 0));
  CHECK(spec.window == engine::Window{{3, 3}, {2, 2}, {0, 1}, {1, 0}});
}

TEST_CASE("ceil_mode takes one more window where pixels are left over, if it begins on the image") {
  const auto [input, kernel, stride, padding, output] = GENERATE(table<int, int, int, int, int>({
      {6, 3, 2, 0, 3},  // 2.5
      {7, 3, 2, 0, 3},  // nothing is left over
      {5, 2, 2, 1, 3},  // 3.5, but the fourth would begin behind the image
      {2, 3, 2, 0, 1},  // larger than the image
      {8, 3, 4, 1, 3},  // 2.75
      {10, 1, 4, 0, 3},
  }));
  CAPTURE(input, kernel, stride, padding);
  v1::Layer layer;
  layer.mutable_max_pool()->set_kernel(kernel);
  layer.mutable_max_pool()->set_stride(stride);
  layer.mutable_max_pool()->set_padding(padding);
  layer.mutable_max_pool()->set_ceil_mode(true);
  const engine::Shape image{2, 3, input, input};
  CHECK(read_one(layer)->output_shape({&image, 1}) == engine::Shape{2, 3, output, output});
}

TEST_CASE("what stands out over padding cannot be told from it in an average") {
  v1::Layer layer;
  layer.mutable_average_pool()->set_kernel(3);
  layer.mutable_average_pool()->set_stride(2);
  layer.mutable_average_pool()->set_ceil_mode(true);
  layer.mutable_average_pool()->set_count_padding(true);
  const engine::Shape even{2, 3, 6, 6};
  const engine::Layout image(even, engine::DType::kFloat32, 0, nullptr);
  const auto spec = std::get<engine::Pool2dSpec>(read_one(layer)->operator_spec({&image, 1}, 0));
  CHECK_FALSE(spec.count_padding);
  CHECK(spec.window.extra_padding == engine::Extent2d{1, 1});
  layer.mutable_average_pool()->set_padding(1);
  CHECK_THROWS_WITH(read_one(layer)->output_shape({&even, 1}),
                    ContainsSubstring("a window stands out over the padding"));
  const engine::Shape odd{2, 3, 7, 7};
  CHECK(read_one(layer)->output_shape({&odd, 1}) == engine::Shape{2, 3, 4, 4});
}

TEST_CASE("a filter of a group reads the channels of its group") {
  v1::Layer layer;
  layer.mutable_conv()->set_filters(8);
  layer.mutable_conv()->set_kernel(3);
  layer.mutable_conv()->set_groups(2);
  const engine::Shape image{2, 6, 5, 5};
  const auto conv = read_one(layer);
  const auto specs = conv->parameters({&image, 1});
  CHECK(specs[0].shape == engine::Shape{8, 3, 3, 3});
  CHECK(specs[0].fan.in == 3 * 9);
  CHECK(specs[0].fan.out == 4 * 9);
  CHECK(conv->forward_flops({&image, 1}) == 2 * 8 * 9 * (2 * 3 * 9 + 1));
  const engine::Shape odd{2, 5, 5, 5};
  CHECK_THROWS_WITH(conv->output_shape({&odd, 1}),
                    ContainsSubstring("groups must divide the 5 channels of its input and its 8 filters; 2 does not"));
}

TEST_CASE("the slope of leaky_relu is read, with its default") {
  v1::Layer layer;
  layer.mutable_leaky_relu();
  CHECK(read_one(layer)->activation() == engine::ActivationFunction(engine::ActivationKind::kLeakyRelu, 0.01F));
  layer.mutable_leaky_relu()->set_slope(0.2F);
  CHECK(read_one(layer)->activation()->slope == 0.2F);
}

TEST_CASE("parameters are read with their initializers and multipliers") {
  v1::Layer layer;
  layer.mutable_dense()->set_units(5);
  layer.mutable_dense()->mutable_weight()->mutable_initializer()->mutable_gaussian()->set_stddev(0.25F);
  layer.mutable_dense()->mutable_weight()->set_decay_multiplier(0.0F);
  layer.mutable_dense()->mutable_bias()->mutable_initializer()->mutable_constant()->set_value(3.0F);
  layer.mutable_dense()->mutable_bias()->set_learning_rate_multiplier(2.0F);
  const engine::Shape features{2, 7};
  auto specs = read_one(layer)->parameters({&features, 1});
  REQUIRE(specs.size() == 2);
  CHECK(specs[0].initializer.kind == Initializer::Kind::kGaussian);
  CHECK(specs[0].initializer.stddev == 0.25F);
  CHECK(specs[0].decay_multiplier == 0.0F);
  CHECK(specs[0].learning_rate_multiplier == 1.0F);
  CHECK(specs[1].initializer.kind == Initializer::Kind::kConstant);
  CHECK(specs[1].initializer.value == 3.0F);
  CHECK(specs[1].learning_rate_multiplier == 2.0F);

  layer.mutable_dense()->clear_bias();
  layer.mutable_dense()->mutable_weight()->mutable_initializer()->mutable_uniform()->set_low(-1.0F);
  specs = read_one(layer)->parameters({&features, 1});
  CHECK(specs[0].initializer.kind == Initializer::Kind::kUniform);
  CHECK(specs[0].initializer.low == -1.0F);
  CHECK(specs[0].initializer.high == 0.05F);
  CHECK(specs[1].initializer.value == 0.0F);

  layer.mutable_dense()->set_use_bias(false);
  layer.mutable_dense()->clear_weight();
  specs = read_one(layer)->parameters({&features, 1});
  REQUIRE(specs.size() == 1);
  CHECK(specs[0].initializer.kind == Initializer::Kind::kHe);
}

TEST_CASE("filling in defaults twice changes nothing") {
  v1::Model model;
  model.mutable_zoo()->mutable_mlp();
  model.add_layers()->mutable_conv()->set_kernel(3);
  model.add_layers()->mutable_max_pool()->set_kernel(3);
  model.add_layers()->mutable_dropout();
  model.add_layers()->mutable_conv()->set_padding_mode(v1::Padding::SAME);
  fill_defaults(model);
  v1::Model again = model;
  fill_defaults(again);
  CHECK(again.SerializeAsString() == model.SerializeAsString());
  CHECK(model.zoo().mlp().hidden_size() == 2);
  CHECK(model.layers(1).max_pool().stride() == 3);
  CHECK(model.layers(0).conv().padding_mode() == v1::Padding::EXPLICIT);
  CHECK_FALSE(model.layers(3).conv().has_padding());
}

TEST_CASE("what is wrong with a model is found all at once") {
  v1::Model model;
  model.add_layers()->mutable_conv()->set_kernel(0);
  model.add_layers()->set_name("b");
  fill_defaults(model);
  FieldIssues issues;
  read_model(model, kMnist, issues);
  std::vector<std::string> texts;
  for (const FieldIssue& issue : issues.all()) texts.push_back(issue.path + " | " + issue.message);
  CHECK(texts == std::vector<std::string>{
                     "layers[0].conv.filters | layers[0]: filters is missing: how many channels the output has",
                     "layers[0].conv.kernel | layers[0]: kernel must be in [1, 1024], not 0",
                     "layers[1] | layer 'b': has no kind; give it one, such as conv {}, dense {} or relu {}"});
}

}  // namespace arbalest::dataflow
