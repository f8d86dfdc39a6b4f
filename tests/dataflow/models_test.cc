// Layers read from the model schema.
#include <functional>

#include <fmt/format.h>

#include "arbalest/v1/field.pb.h"
#include "arbalest/v1/model.pb.h"
#include "dataflow/models/model_reader.h"
#include "tests/support/catch.h"

namespace arbalest::dataflow {

namespace {

const InputDescription kMnist = image_input({1, 28, 28}, 10);

// Reads a model of one layer, which must be valid.
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

TEST_CASE("every kind of layer is read") {
  const google::protobuf::OneofDescriptor& kinds = *v1::Layer::descriptor()->FindOneofByName("kind");
  CHECK(kinds.field_count() >= 26);
  for (int k = 0; k < kinds.field_count(); ++k) {
    const google::protobuf::FieldDescriptor& kind = *kinds.field(k);
    INFO(kind.name());
    v1::Layer layer;
    layer.set_name("a");
    google::protobuf::Message& message = *layer.GetReflection()->MutableMessage(&layer, &kind);
    // What a layer cannot do without, such as the number of its outputs.
    for (int f = 0; f < kind.message_type()->field_count(); ++f) {
      const google::protobuf::FieldDescriptor& field = *kind.message_type()->field(f);
      const bool is_needed = field.options().GetExtension(v1::field).has_missing() || field.name() == "kernel";
      if (is_needed) message.GetReflection()->SetInt32(&message, &field, 2);
    }
    CHECK(read_one(layer)->kind() == kind.name());
  }
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

TEST_CASE("extra padding lies below and to the right only, and averages may count it") {
  const engine::Shape image{2, 3, 8, 9};
  v1::Layer layer;
  layer.mutable_average_pool()->set_kernel(3);
  layer.mutable_average_pool()->set_stride(1);
  layer.mutable_average_pool()->set_extra_padding_height(1);
  layer.mutable_average_pool()->set_extra_padding_width(2);
  layer.mutable_average_pool()->set_count_padding(true);
  CHECK(read_one(layer)->output_shape({&image, 1}) == engine::Shape{2, 3, 7, 9});
  const std::vector<engine::Layout> inputs{engine::Layout(image, engine::DType::kFloat32, 0, nullptr)};
  const auto spec = std::get<engine::Pool2dSpec>(read_one(layer)->operator_spec(inputs, 0));
  CHECK(spec.window.padding == engine::Extent2d{0, 0});
  CHECK(spec.window.extra_padding == engine::Extent2d{1, 2});
  CHECK(spec.count_padding);
}

TEST_CASE("negative extra padding leaves pixels away below and to the right") {
  const engine::Shape image{2, 3, 8, 9};
  v1::Layer layer;
  layer.mutable_conv()->set_filters(4);
  layer.mutable_conv()->set_kernel(3);
  layer.mutable_conv()->set_padding(2);
  layer.mutable_conv()->set_extra_padding_height(-2);
  layer.mutable_conv()->set_extra_padding_width(-1);
  CHECK(read_one(layer)->output_shape({&image, 1}) == engine::Shape{2, 4, 8, 10});
  const engine::Layout input(image, engine::DType::kFloat32, 0, nullptr);
  const auto spec = std::get<engine::Conv2dSpec>(read_one(layer)->operator_spec({&input, 1}, 0));
  CHECK(padding_after(spec.window) == engine::Extent2d{0, 1});
  layer.mutable_average_pool()->set_kernel(3);
  layer.mutable_average_pool()->set_padding(2);
  layer.mutable_average_pool()->set_extra_padding(-2);
  layer.mutable_average_pool()->set_count_padding(true);
  CHECK(std::get<engine::Pool2dSpec>(read_one(layer)->operator_spec({&input, 1}, 0)).count_padding);
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

TEST_CASE("SAME with kernel 3 and stride 2 pads even images at the bottom and right only, odd images evenly") {
  v1::Layer layer;
  layer.mutable_conv()->set_filters(4);
  layer.mutable_conv()->set_kernel(3);
  layer.mutable_conv()->set_stride(2);
  layer.mutable_conv()->set_padding_mode(v1::Padding::SAME);
  const engine::Layout image({2, 3, 8, 9}, engine::DType::kFloat32, 0, nullptr);
  const auto spec = std::get<engine::Conv2dSpec>(read_one(layer)->operator_spec({&image, 1}, 0));
  CHECK(spec.window == engine::Window{{3, 3}, {2, 2}, {0, 1}, {1, 0}});
}

TEST_CASE("ceil_mode adds one more window for leftover pixels if the window begins on the image") {
  const auto [input, kernel, stride, padding, output] = GENERATE(table<int, int, int, int, int>({
      {6, 3, 2, 0, 3},  // 2.5
      {7, 3, 2, 0, 3},  // nothing is left over
      {5, 2, 2, 1, 3},  // 3.5, but the fourth window would begin after the image
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

TEST_CASE("average pooling with count_padding cannot extend past explicit padding") {
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
                    ContainsSubstring("the last window extends past the padding"));
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

TEST_CASE("batch norm has PyTorch's parameter names and initial values") {
  v1::Layer layer;
  layer.mutable_batch_norm()->set_momentum(0.25F);
  layer.mutable_batch_norm()->mutable_scale()->set_decay_multiplier(0.0F);
  layer.mutable_batch_norm()->mutable_shift()->set_learning_rate_multiplier(2.0F);
  const engine::Shape images{2, 7, 4, 4};
  const auto specs = read_one(layer)->parameters({&images, 1});
  REQUIRE(specs.size() == engine::kBatchNormParameters);
  const char* const names[] = {"weight", "bias", "running_mean", "running_var"};
  for (std::size_t p = 0; p < specs.size(); ++p) {
    CHECK(specs[p].name == names[p]);
    CHECK(specs[p].shape == engine::Shape{7});
    CHECK(specs[p].initializer.kind == Initializer::Kind::kConstant);
    CHECK(specs[p].initializer.value == (p == 0 || p == 3 ? 1.0F : 0.0F));
    CHECK(specs[p].kind == (p < 2 ? ParameterKind::kNormalization : ParameterKind::kStatistic));
    CHECK(specs[p].statistic_momentum == (p < 2 ? 0.0F : 0.25F));
  }
  CHECK(specs[0].decay_multiplier == 0.0F);
  CHECK(specs[1].learning_rate_multiplier == 2.0F);

  layer.mutable_batch_norm()->mutable_scale()->mutable_initializer()->mutable_constant();
  CHECK(read_one(layer)->parameters({&images, 1})[0].initializer.value == 0.0F);  // a constant says 0
  const engine::Shape number{2};
  CHECK_THROWS_WITH(read_one(layer)->output_shape({&number, 1}), ContainsSubstring("not one number per example"));
}

TEST_CASE("filling in defaults is idempotent") {
  v1::Model model;
  model.mutable_zoo()->mutable_mlp();
  model.add_layers()->mutable_conv()->set_kernel(3);
  model.add_layers()->mutable_max_pool()->set_kernel(3);
  model.add_layers()->mutable_dropout();
  model.add_layers()->mutable_batch_norm();
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

TEST_CASE("all errors of a model are reported at once") {
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
