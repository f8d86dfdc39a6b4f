#include "bench/support/bare_network.h"

#include <algorithm>
#include <iterator>

#include "engine/base/error.h"

namespace arbalest::bench {

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;
constexpr auto kTraining = dnnl::prop_kind::forward_training;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;
const memory::dims kZero{0, 0};

memory::desc any(const memory::dims& dims) { return {dims, kFloat, Tag::any}; }

}  // namespace

BareNetwork BareNetwork::lenet(std::int64_t batch) {
  constexpr auto kMax = dnnl::algorithm::pooling_max;
  BareNetwork net;
  Tensor image = net.image({batch, 1, 28, 28});
  Tensor conv1, pool1, conv2, pool2, dense1, dense2;
  net.convolution(image, conv1, 20, {.size = 5}, true);
  net.pooling(conv1, pool1, kMax, 2);
  net.convolution(pool1, conv2, 50, {.size = 5});
  net.pooling(conv2, pool2, kMax, 2);
  net.dense(pool2, dense1, 500);
  net.relu(dense1);
  net.dense(dense1, dense2, 10);
  net.finish();
  return net;
}

BareNetwork BareNetwork::resnet_cifar(int depth, std::int64_t batch) {
  BareNetwork net;
  Tensor last = net.image({batch, 3, 32, 32});
  const auto layer = [&](std::int64_t filters, std::int64_t stride, bool first) {
    Tensor convolved, normalized;
    net.convolution(last, convolved, filters, {.size = 3, .stride = stride, .padding = 1, .bias = false}, first);
    net.batch_norm_relu(convolved, normalized);
    last = normalized;
  };
  layer(16, 1, true);
  const int layers_of_stage = (depth - 2) / 3;
  for (int stage = 0; stage < 3; ++stage) {
    for (int i = 0; i < layers_of_stage; ++i) layer(16 << stage, stage > 0 && i == 0 ? 2 : 1, false);
  }
  Tensor pooled, logits;
  net.pooling(last, pooled, dnnl::algorithm::pooling_avg, 8);
  net.dense(pooled, logits, 10);
  net.finish();
  return net;
}

BareNetwork::Tensor BareNetwork::image(const memory::dims& dims) { return {allocate({dims, kFloat, Tag::nchw}), {}}; }

void BareNetwork::finish() {
  for (auto layer = backward_.rbegin(); layer != backward_.rend(); ++layer) {
    std::ranges::move(*layer, std::back_inserter(calls_));
  }
}

void BareNetwork::step() {
  for (const Call& call : calls_) {
    const dnnl_status_t status = dnnl_primitive_execute(call.primitive.get(), stream_.get(),
                                                        static_cast<int>(call.arguments.size()), call.arguments.data());
    ARBALEST_CHECK(status == dnnl_success);
  }
}

dnnl::memory BareNetwork::allocate(const Description& description) {
  memories_.emplace_back(description, engine_);
  auto* values = static_cast<float*>(memories_.back().get_data_handle());
  // Fills with values of ordinary size, because denormal numbers would slow the primitives down.
  std::fill_n(values, description.get_size() / sizeof(float), 0.01F);
  return memories_.back();
}

dnnl::memory BareNetwork::allocate_workspace(const Description& description) {
  memories_.emplace_back(description, engine_);
  return memories_.back();
}

void BareNetwork::begin_backward() {
  backward_.emplace_back();
  in_backward_ = true;
}

void BareNetwork::add(const dnnl::primitive& primitive, const std::vector<std::pair<int, Memory>>& arguments) {
  Call call{primitive, {}};
  for (const auto& [index, memory] : arguments) call.arguments.push_back({index, memory.get()});
  (in_backward_ ? backward_.back() : calls_).push_back(std::move(call));
}

dnnl::memory BareNetwork::as(const Memory& source, const Description& wanted) {
  if (source.get_desc() == wanted) return source;
  const Memory copy = allocate(wanted);
  add(dnnl::reorder(source, copy), {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, copy}});
  return copy;
}

void BareNetwork::convolution(Tensor& input, Tensor& output, std::int64_t filters, const Kernel& kernel, bool first) {
  const memory::dims x = input.value.get_desc().dims();
  const auto positions = [&](std::int64_t extent) {
    return (extent + 2 * kernel.padding - kernel.size) / kernel.stride + 1;
  };
  const memory::dims y{x[0], filters, positions(x[2]), positions(x[3])};
  const memory::dims w{filters, x[1], kernel.size, kernel.size};
  const Description bias = kernel.bias ? Description({filters}, kFloat, Tag::a) : Description();
  const memory::dims stride{kernel.stride, kernel.stride};
  const memory::dims padding{kernel.padding, kernel.padding};
  const dnnl::convolution_forward::primitive_desc forward(
      {kTraining, kDirect, any(x), any(w), bias, any(y), stride, padding, padding}, engine_);
  const Memory weights = allocate(forward.weights_desc());
  const Memory bias_memory = allocate(bias);
  const Memory source = as(input.value, forward.src_desc());
  output = {allocate(forward.dst_desc()), allocate(forward.dst_desc())};
  add(dnnl::convolution_forward(forward), {{DNNL_ARG_SRC, source},
                                           {DNNL_ARG_WEIGHTS, weights},
                                           {DNNL_ARG_BIAS, bias_memory},
                                           {DNNL_ARG_DST, output.value}});

  begin_backward();
  const dnnl::convolution_backward_weights::primitive_desc of_weights(
      {kDirect, any(x), any(w), bias, any(y), stride, padding, padding}, engine_, forward);
  const Memory weights_gradient = allocate(of_weights.diff_weights_desc());
  add(dnnl::convolution_backward_weights(of_weights),
      {{DNNL_ARG_SRC, as(source, of_weights.src_desc())},
       {DNNL_ARG_DIFF_DST, as(output.gradient, of_weights.diff_dst_desc())},
       {DNNL_ARG_DIFF_WEIGHTS, weights_gradient},
       {DNNL_ARG_DIFF_BIAS, allocate(bias)}});
  as(weights_gradient, weights.get_desc());
  if (!first) {
    const dnnl::convolution_backward_data::primitive_desc of_input(
        {kDirect, any(x), any(w), any(y), stride, padding, padding}, engine_, forward);
    const Memory gradient = allocate(of_input.diff_src_desc());
    add(dnnl::convolution_backward_data(of_input), {{DNNL_ARG_DIFF_DST, as(output.gradient, of_input.diff_dst_desc())},
                                                    {DNNL_ARG_WEIGHTS, as(weights, of_input.weights_desc())},
                                                    {DNNL_ARG_DIFF_SRC, gradient}});
    as(gradient, input.value.get_desc());
  }
  in_backward_ = false;
}

void BareNetwork::batch_norm_relu(Tensor& input, Tensor& output) {
  using Flags = dnnl::normalization_flags;
  constexpr float kEpsilon = 1e-5F;
  const Flags flags = Flags::use_scale | Flags::use_shift | Flags::fuse_norm_relu;
  const Description x = input.value.get_desc();
  const Description channels({x.dims()[1]}, kFloat, Tag::a);
  const dnnl::batch_normalization_forward::primitive_desc forward({kTraining, x, kEpsilon, flags}, engine_);
  output = {allocate(x), allocate(x)};
  const Memory mean = allocate(channels);
  const Memory variance = allocate(channels);
  const Memory scale = allocate(channels);
  const Memory shift = allocate(channels);
  const Memory workspace = allocate_workspace(forward.workspace_desc());
  add(dnnl::batch_normalization_forward(forward), {{DNNL_ARG_SRC, input.value},
                                                   {DNNL_ARG_MEAN, mean},
                                                   {DNNL_ARG_VARIANCE, variance},
                                                   {DNNL_ARG_SCALE, scale},
                                                   {DNNL_ARG_SHIFT, shift},
                                                   {DNNL_ARG_DST, output.value},
                                                   {DNNL_ARG_WORKSPACE, workspace}});

  begin_backward();
  const dnnl::batch_normalization_backward::primitive_desc backward({dnnl::prop_kind::backward, x, x, kEpsilon, flags},
                                                                    engine_, forward);
  add(dnnl::batch_normalization_backward(backward), {{DNNL_ARG_SRC, input.value},
                                                     {DNNL_ARG_MEAN, mean},
                                                     {DNNL_ARG_VARIANCE, variance},
                                                     {DNNL_ARG_SCALE, scale},
                                                     {DNNL_ARG_SHIFT, shift},
                                                     {DNNL_ARG_WORKSPACE, workspace},
                                                     {DNNL_ARG_DIFF_DST, output.gradient},
                                                     {DNNL_ARG_DIFF_SRC, input.gradient},
                                                     {DNNL_ARG_DIFF_SCALE, allocate(channels)},
                                                     {DNNL_ARG_DIFF_SHIFT, allocate(channels)}});
  in_backward_ = false;
}

void BareNetwork::pooling(Tensor& input, Tensor& output, dnnl::algorithm algorithm, std::int64_t size) {
  const Description x = input.value.get_desc();
  const memory::dims window{size, size};
  const memory::dims y{x.dims()[0], x.dims()[1], x.dims()[2] / size, x.dims()[3] / size};
  const dnnl::pooling_forward::primitive_desc forward({kTraining, algorithm, x, any(y), window, window, kZero, kZero},
                                                      engine_);
  output = {allocate(forward.dst_desc()), allocate(forward.dst_desc())};
  const Memory workspace = allocate_workspace(forward.workspace_desc());
  add(dnnl::pooling_forward(forward),
      {{DNNL_ARG_SRC, input.value}, {DNNL_ARG_DST, output.value}, {DNNL_ARG_WORKSPACE, workspace}});

  begin_backward();
  const dnnl::pooling_backward::primitive_desc backward(
      {algorithm, x, forward.dst_desc(), window, window, kZero, kZero}, engine_, forward);
  add(dnnl::pooling_backward(backward),
      {{DNNL_ARG_DIFF_DST, output.gradient}, {DNNL_ARG_WORKSPACE, workspace}, {DNNL_ARG_DIFF_SRC, input.gradient}});
  in_backward_ = false;
}

void BareNetwork::dense(Tensor& input, Tensor& output, std::int64_t units) {
  // The features must be in canonical order, as the weights [units, features] require.
  const memory::dims given = input.value.get_desc().dims();
  std::int64_t features = 1;
  for (std::size_t axis = 1; axis < given.size(); ++axis) features *= given[axis];
  const bool images = given.size() == 4;
  const Description plain(given, kFloat, images ? Tag::nchw : Tag::nc);
  const Description flat({given[0], features}, kFloat, Tag::nc);
  const Memory dense_input = as(input.value, plain);
  const Memory source(flat, engine_, dense_input.get_data_handle());
  memories_.push_back(source);

  const Description y({given[0], units}, kFloat, Tag::nc);
  const Description bias({units}, kFloat, Tag::a);
  const memory::dims w{units, features};
  const dnnl::inner_product_forward::primitive_desc forward({kTraining, flat, any(w), bias, y}, engine_);
  const Memory weights = allocate(forward.weights_desc());
  const Memory bias_memory = allocate(bias);
  output = {allocate(y), allocate(y)};
  add(dnnl::inner_product_forward(forward), {{DNNL_ARG_SRC, source},
                                             {DNNL_ARG_WEIGHTS, weights},
                                             {DNNL_ARG_BIAS, bias_memory},
                                             {DNNL_ARG_DST, output.value}});

  begin_backward();
  const dnnl::inner_product_backward_weights::primitive_desc of_weights({flat, any(w), bias, y}, engine_, forward);
  const Memory weights_gradient = allocate(of_weights.diff_weights_desc());
  add(dnnl::inner_product_backward_weights(of_weights), {{DNNL_ARG_SRC, source},
                                                         {DNNL_ARG_DIFF_DST, output.gradient},
                                                         {DNNL_ARG_DIFF_WEIGHTS, weights_gradient},
                                                         {DNNL_ARG_DIFF_BIAS, allocate(bias)}});
  as(weights_gradient, weights.get_desc());
  const dnnl::inner_product_backward_data::primitive_desc of_input({flat, any(w), y}, engine_, forward);
  const Memory gradient = images ? allocate(plain) : input.gradient;
  const Memory flat_gradient(flat, engine_, gradient.get_data_handle());
  memories_.push_back(flat_gradient);
  add(dnnl::inner_product_backward_data(of_input), {{DNNL_ARG_DIFF_DST, output.gradient},
                                                    {DNNL_ARG_WEIGHTS, as(weights, of_input.weights_desc())},
                                                    {DNNL_ARG_DIFF_SRC, flat_gradient}});
  if (images) {
    add(dnnl::reorder(gradient, input.gradient), {{DNNL_ARG_FROM, gradient}, {DNNL_ARG_TO, input.gradient}});
  }
  in_backward_ = false;
}

void BareNetwork::relu(Tensor& tensor) {
  const Description description = tensor.value.get_desc();
  const dnnl::eltwise_forward::primitive_desc forward(
      {kTraining, dnnl::algorithm::eltwise_relu, description, 0.0F, 0.0F}, engine_);
  add(dnnl::eltwise_forward(forward), {{DNNL_ARG_SRC, tensor.value}, {DNNL_ARG_DST, tensor.value}});

  begin_backward();
  const dnnl::eltwise_backward::primitive_desc backward(
      {dnnl::algorithm::eltwise_relu, description, description, 0.0F, 0.0F}, engine_, forward);
  add(dnnl::eltwise_backward(backward),
      {{DNNL_ARG_SRC, tensor.value}, {DNNL_ARG_DIFF_DST, tensor.gradient}, {DNNL_ARG_DIFF_SRC, tensor.gradient}});
  in_backward_ = false;
}

}  // namespace arbalest::bench
