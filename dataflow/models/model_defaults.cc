#include "dataflow/models/model_defaults.h"

#include "dataflow/layers/batch_norm.h"
#include "dataflow/layers/images/local_response_norm.h"
#include "dataflow/layers/parameter_options.h"
#include "dataflow/models/layer_reader.h"
#include "dataflow/models/zoo/zoo_defaults.h"

namespace arbalest::dataflow {

namespace {

constexpr float kDefaultUniform = 0.05F;
constexpr float kDefaultStddev = 0.01F;
constexpr float kDefaultDropout = 0.5F;
constexpr float kDefaultSlope = 0.01F;

void choose(v1::Initializer& initializer, Initializer::Kind kind) {
  switch (kind) {
    case Initializer::Kind::kConstant:
      initializer.mutable_constant();
      break;
    case Initializer::Kind::kUniform:
      initializer.mutable_uniform();
      break;
    case Initializer::Kind::kGaussian:
      initializer.mutable_gaussian();
      break;
    case Initializer::Kind::kXavier:
      initializer.mutable_xavier();
      break;
    case Initializer::Kind::kHe:
      initializer.mutable_he();
      break;
  }
}

void fill(v1::Initializer& initializer, const Initializer& unless_given) {
  const bool is_left_out = initializer.kind_case() == v1::Initializer::KIND_NOT_SET;
  if (is_left_out) choose(initializer, unless_given.kind);
  if (initializer.has_constant() && !initializer.constant().has_value()) {
    initializer.mutable_constant()->set_value(is_left_out ? unless_given.value : 0.0F);
  }
  if (initializer.has_uniform()) {
    v1::Initializer::Uniform& uniform = *initializer.mutable_uniform();
    if (!uniform.has_low()) uniform.set_low(-kDefaultUniform);
    if (!uniform.has_high()) uniform.set_high(kDefaultUniform);
  }
  if (initializer.has_gaussian()) {
    v1::Initializer::Gaussian& gaussian = *initializer.mutable_gaussian();
    if (!gaussian.has_mean()) gaussian.set_mean(0.0F);
    if (!gaussian.has_stddev()) gaussian.set_stddev(kDefaultStddev);
  }
}

void fill(v1::Parameter& parameter, const Initializer& unless_given) {
  fill(*parameter.mutable_initializer(), unless_given);
  if (!parameter.has_learning_rate_multiplier()) parameter.set_learning_rate_multiplier(1.0F);
  if (!parameter.has_decay_multiplier()) parameter.set_decay_multiplier(1.0F);
}

// For layers with a weight, and possibly a bias.
template <typename Message>
void fill_parameters(Message& layer) {
  if (!layer.has_use_bias()) layer.set_use_bias(true);
  fill(*layer.mutable_weight(), kDefaultWeight);
  if (layer.use_bias()) fill(*layer.mutable_bias(), kDefaultBias);
}

template <typename Message>
bool has_any_stride(const Message& window) {
  return window.has_stride() || window.has_stride_height() || window.has_stride_width();
}

template <typename Message>
void fill_padding(Message& window) {
  if (window.padding_mode() == v1::Padding::MODE_UNSPECIFIED) window.set_padding_mode(v1::Padding::EXPLICIT);
  if (window.padding_mode() != v1::Padding::EXPLICIT) return;
  if (!window.has_padding() && !window.has_padding_height() && !window.has_padding_width()) window.set_padding(0);
}

void fill(v1::Embedding& embedding) {
  if (!embedding.has_column()) embedding.set_column(0);
  fill(*embedding.mutable_weight(), kDefaultWeight);
}

void fill(v1::InnerProduct& product) {
  if (!product.has_use_bias()) product.set_use_bias(false);
  if (product.use_bias()) fill(*product.mutable_bias(), kDefaultBias);
}

void fill(v1::Conv& conv) {
  if (!has_any_stride(conv)) conv.set_stride(1);
  fill_padding(conv);
  if (!conv.has_dilation() && !conv.has_dilation_height() && !conv.has_dilation_width()) conv.set_dilation(1);
  if (!conv.has_groups()) conv.set_groups(1);
  fill_parameters(conv);
}

// A wrong kernel is not used as a default, so that it is reported only once.
bool is_kernel(int length) { return out_of_range("kernel", length, kKernelLength).empty(); }

void fill(v1::Pool& pool) {
  if (!has_any_stride(pool)) {
    if (is_kernel(pool.kernel())) {
      pool.set_stride(pool.kernel());
    } else if (is_kernel(pool.kernel_height()) && is_kernel(pool.kernel_width())) {
      pool.set_stride_height(pool.kernel_height());
      pool.set_stride_width(pool.kernel_width());
    }
  }
  fill_padding(pool);
  if (!pool.has_ceil_mode()) pool.set_ceil_mode(false);
}

void fill_average(v1::Pool& pool) {
  fill(pool);
  if (!pool.has_count_padding()) pool.set_count_padding(false);
}

void fill(v1::BatchNorm& norm) {
  const BatchNormLayer::Options defaults;
  if (!norm.has_epsilon()) norm.set_epsilon(defaults.epsilon);
  if (!norm.has_momentum()) norm.set_momentum(defaults.momentum);
  fill(*norm.mutable_scale(), defaults.scale.initializer);
  fill(*norm.mutable_shift(), defaults.shift.initializer);
}

void fill(v1::LocalResponseNorm& norm) {
  constexpr LocalResponseNormLayer::Options kDefaults;
  if (!norm.has_size()) norm.set_size(static_cast<int>(kDefaults.size));
  if (!norm.has_alpha()) norm.set_alpha(kDefaults.alpha);
  if (!norm.has_beta()) norm.set_beta(kDefaults.beta);
  if (!norm.has_k()) norm.set_k(kDefaults.k);
}

void fill(v1::SoftmaxCrossEntropy& loss) {
  if (!loss.has_weight()) loss.set_weight(1.0F);
  if (!loss.has_label_smoothing()) loss.set_label_smoothing(0.0F);
}

void fill(v1::Layer& layer) {
  if (layer.has_conv()) fill(*layer.mutable_conv());
  if (layer.has_max_pool()) fill(*layer.mutable_max_pool());
  if (layer.has_average_pool()) fill_average(*layer.mutable_average_pool());
  if (layer.has_dense()) fill_parameters(*layer.mutable_dense());
  if (layer.has_batch_norm()) fill(*layer.mutable_batch_norm());
  if (layer.has_dropout() && !layer.dropout().has_ratio()) layer.mutable_dropout()->set_ratio(kDefaultDropout);
  if (layer.has_padded_shortcut() && !layer.padded_shortcut().has_stride()) {
    layer.mutable_padded_shortcut()->set_stride(1);
  }
  if (layer.has_embedding()) fill(*layer.mutable_embedding());
  if (layer.has_inner_product()) fill(*layer.mutable_inner_product());
  if (layer.has_squared_error() && !layer.squared_error().has_weight()) layer.mutable_squared_error()->set_weight(1.0F);
  if (layer.has_softmax_cross_entropy()) fill(*layer.mutable_softmax_cross_entropy());
  if (layer.has_local_response_norm()) fill(*layer.mutable_local_response_norm());
  if (layer.has_leaky_relu() && !layer.leaky_relu().has_slope()) layer.mutable_leaky_relu()->set_slope(kDefaultSlope);
}

}  // namespace

void fill_defaults(v1::Model& model) {
  if (model.has_zoo()) fill_zoo_defaults(*model.mutable_zoo());
  for (v1::Layer& layer : *model.mutable_layers()) fill(layer);
}

}  // namespace arbalest::dataflow
