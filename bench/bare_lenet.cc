#include "bench/bare_lenet.h"

#include <algorithm>
#include <iterator>

#include "engine/error.h"

namespace arbalest::bench {

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;
constexpr auto kTraining = dnnl::prop_kind::forward_training;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;
constexpr auto kMax = dnnl::algorithm::pooling_max;
const memory::dims kZero{0, 0};

memory::desc any(const memory::dims& dims) { return {dims, kFloat, Tag::any}; }

}  // namespace

BareLenet::BareLenet(std::int64_t batch) : target_(&calls_) {
  Tensor image{allocate({{batch, 1, 28, 28}, kFloat, Tag::nchw}), {}};
  Tensor conv1, pool1, conv2, pool2, dense1, dense2;
  convolution(image, conv1, 20, true);
  pooling(conv1, pool1);
  convolution(pool1, conv2, 50, false);
  pooling(conv2, pool2);
  dense(pool2, dense1, 500);
  relu(dense1);
  dense(dense1, dense2, 10);
  for (auto layer = backward_.rbegin(); layer != backward_.rend(); ++layer) {
    std::ranges::move(*layer, std::back_inserter(calls_));
  }
}

void BareLenet::step() {
  for (const Call& call : calls_) {
    const dnnl_status_t status = dnnl_primitive_execute(call.primitive.get(), stream_.get(),
                                                        static_cast<int>(call.arguments.size()), call.arguments.data());
    ARBALEST_CHECK(status == dnnl_success);
  }
}

dnnl::memory BareLenet::allocate(const Description& description) {
  memories_.emplace_back(description, engine_);
  auto* values = static_cast<float*>(memories_.back().get_data_handle());
  // Values of ordinary size: denormal numbers would slow the primitives down.
  std::fill_n(values, description.get_size() / sizeof(float), 0.01F);
  return memories_.back();
}

void BareLenet::add(const dnnl::primitive& primitive, const std::vector<std::pair<int, Memory>>& arguments) {
  Call call{primitive, {}};
  for (const auto& [index, memory] : arguments) call.arguments.push_back({index, memory.get()});
  target_->push_back(std::move(call));
}

dnnl::memory BareLenet::as(const Memory& source, const Description& wanted) {
  if (source.get_desc() == wanted) return source;
  const Memory copy = allocate(wanted);
  add(dnnl::reorder(source, copy), {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, copy}});
  return copy;
}

void BareLenet::convolution(Tensor& input, Tensor& output, std::int64_t filters, bool first) {
  const memory::dims x = input.value.get_desc().dims();
  const memory::dims y{x[0], filters, x[2] - 4, x[3] - 4};
  const memory::dims w{filters, x[1], 5, 5};
  const Description bias({filters}, kFloat, Tag::a);
  const memory::dims stride{1, 1};
  const dnnl::convolution_forward::primitive_desc forward(
      {kTraining, kDirect, any(x), any(w), bias, any(y), stride, kZero, kZero}, engine_);
  const Memory weights = allocate(forward.weights_desc());
  const Memory bias_memory = allocate(bias);
  const Memory source = as(input.value, forward.src_desc());
  output = {allocate(forward.dst_desc()), allocate(forward.dst_desc())};
  add(dnnl::convolution_forward(forward), {{DNNL_ARG_SRC, source},
                                           {DNNL_ARG_WEIGHTS, weights},
                                           {DNNL_ARG_BIAS, bias_memory},
                                           {DNNL_ARG_DST, output.value}});

  target_ = &backward_.emplace_back();
  const dnnl::convolution_backward_weights::primitive_desc of_weights(
      {kDirect, any(x), any(w), bias, any(y), stride, kZero, kZero}, engine_, forward);
  const Memory weights_gradient = allocate(of_weights.diff_weights_desc());
  add(dnnl::convolution_backward_weights(of_weights),
      {{DNNL_ARG_SRC, as(source, of_weights.src_desc())},
       {DNNL_ARG_DIFF_DST, as(output.gradient, of_weights.diff_dst_desc())},
       {DNNL_ARG_DIFF_WEIGHTS, weights_gradient},
       {DNNL_ARG_DIFF_BIAS, allocate(bias)}});
  as(weights_gradient, weights.get_desc());
  if (!first) {
    const dnnl::convolution_backward_data::primitive_desc of_input(
        {kDirect, any(x), any(w), any(y), stride, kZero, kZero}, engine_, forward);
    const Memory gradient = allocate(of_input.diff_src_desc());
    add(dnnl::convolution_backward_data(of_input), {{DNNL_ARG_DIFF_DST, as(output.gradient, of_input.diff_dst_desc())},
                                                    {DNNL_ARG_WEIGHTS, as(weights, of_input.weights_desc())},
                                                    {DNNL_ARG_DIFF_SRC, gradient}});
    as(gradient, input.value.get_desc());
  }
  target_ = &calls_;
}

void BareLenet::pooling(Tensor& input, Tensor& output) {
  const Description x = input.value.get_desc();
  const memory::dims two{2, 2};
  const dnnl::pooling_forward::primitive_desc forward(
      {kTraining, kMax, x, any({x.dims()[0], x.dims()[1], x.dims()[2] / 2, x.dims()[3] / 2}), two, two, kZero, kZero},
      engine_);
  output = {allocate(forward.dst_desc()), allocate(forward.dst_desc())};
  memories_.emplace_back(forward.workspace_desc(), engine_);
  const Memory workspace = memories_.back();
  add(dnnl::pooling_forward(forward),
      {{DNNL_ARG_SRC, input.value}, {DNNL_ARG_DST, output.value}, {DNNL_ARG_WORKSPACE, workspace}});

  target_ = &backward_.emplace_back();
  const dnnl::pooling_backward::primitive_desc backward({kMax, x, forward.dst_desc(), two, two, kZero, kZero}, engine_,
                                                        forward);
  add(dnnl::pooling_backward(backward),
      {{DNNL_ARG_DIFF_DST, output.gradient}, {DNNL_ARG_WORKSPACE, workspace}, {DNNL_ARG_DIFF_SRC, input.gradient}});
  target_ = &calls_;
}

void BareLenet::dense(Tensor& input, Tensor& output, std::int64_t units) {
  // Features in canonical order, as weights [units, features] need them.
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

  target_ = &backward_.emplace_back();
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
  target_ = &calls_;
}

void BareLenet::relu(Tensor& tensor) {
  const Description description = tensor.value.get_desc();
  const dnnl::eltwise_forward::primitive_desc forward(
      {kTraining, dnnl::algorithm::eltwise_relu, description, 0.0F, 0.0F}, engine_);
  add(dnnl::eltwise_forward(forward), {{DNNL_ARG_SRC, tensor.value}, {DNNL_ARG_DST, tensor.value}});

  target_ = &backward_.emplace_back();
  const dnnl::eltwise_backward::primitive_desc backward(
      {dnnl::algorithm::eltwise_relu, description, description, 0.0F, 0.0F}, engine_, forward);
  add(dnnl::eltwise_backward(backward),
      {{DNNL_ARG_SRC, tensor.value}, {DNNL_ARG_DIFF_DST, tensor.gradient}, {DNNL_ARG_DIFF_SRC, tensor.gradient}});
  target_ = &calls_;
}

}  // namespace arbalest::bench
