#include "dataflow/models/layer_reader.h"

#include "dataflow/layers/activation.h"
#include "dataflow/layers/batch_norm.h"
#include "dataflow/layers/branch_layers.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/dropout.h"
#include "dataflow/layers/embedding.h"
#include "dataflow/layers/flatten.h"
#include "dataflow/layers/images/conv2d.h"
#include "dataflow/layers/images/global_average_pool.h"
#include "dataflow/layers/images/local_response_norm.h"
#include "dataflow/layers/images/padded_shortcut.h"
#include "dataflow/layers/images/pool2d.h"
#include "dataflow/layers/inner_product.h"
#include "dataflow/layers/layer_norm.h"
#include "dataflow/layers/outputs/classification.h"
#include "dataflow/layers/outputs/softmax.h"
#include "dataflow/layers/outputs/squared_error.h"
#include "dataflow/layers/prelu.h"
#include "dataflow/models/accuracy_reader.h"
#include "dataflow/models/fields/field_defaults.h"
#include "dataflow/models/fields/field_ranges.h"
#include "dataflow/models/window_reader.h"

namespace arbalest::dataflow {

namespace {

// Reads the fields of one layer and reports what is wrong with them under the layer's name.
class LayerReader {
 public:
  LayerReader(const v1::Layer& message, const std::string& path, FieldIssues& issues)
      : message_(message), path_(path), issues_(issues) {}

  LayerDescription read() {
    const std::size_t issues_before = issues_.all().size();
    if (message_.has_conv()) check(message_.conv(), "conv");
    if (message_.has_max_pool()) check(message_.max_pool(), "max_pool");
    if (message_.has_average_pool()) check(message_.average_pool(), "average_pool");
    FieldIssues fields;
    check_fields(message_, "", fields);
    for (const FieldIssue& issue : fields.all()) report(issue.path, issue.message);
    LayerDescription description{message_.name(), {message_.input().begin(), message_.input().end()}, read_kind()};
    description.is_sound = issues_.all().size() == issues_before;
    return description;
  }

 private:
  using LayerKind = v1::Layer::KindCase;

  // Returns null if the layer has no kind.
  std::shared_ptr<const Layer> read_kind() {
    switch (message_.kind_case()) {
      case LayerKind::kConv: return conv(message_.conv());
      case LayerKind::kMaxPool: return pool(message_.max_pool(), engine::PoolKind::kMax, "max_pool");
      case LayerKind::kAveragePool: return pool(message_.average_pool(), engine::PoolKind::kAverage, "average_pool");
      case LayerKind::kDense: return dense(message_.dense());
      case LayerKind::kFlatten: return std::make_shared<FlattenLayer>();
      case LayerKind::kRelu: return std::make_shared<ActivationLayer>(engine::ActivationKind::kRelu);
      case LayerKind::kTanh: return std::make_shared<ActivationLayer>(engine::ActivationKind::kTanh);
      case LayerKind::kSigmoid: return std::make_shared<ActivationLayer>(engine::ActivationKind::kSigmoid);
      case LayerKind::kLocalResponseNorm: return local_response_norm(message_.local_response_norm());
      case LayerKind::kLeakyRelu: return leaky_relu(message_.leaky_relu());
      case LayerKind::kGelu: return std::make_shared<ActivationLayer>(engine::ActivationKind::kGelu);
      case LayerKind::kSilu: return std::make_shared<ActivationLayer>(engine::ActivationKind::kSilu);
      case LayerKind::kRelu6: return std::make_shared<ActivationLayer>(engine::ActivationKind::kRelu6);
      case LayerKind::kHardSwish: return std::make_shared<ActivationLayer>(engine::ActivationKind::kHardSwish);
      case LayerKind::kPrelu: return prelu(message_.prelu());
      case LayerKind::kDropout: return dropout(message_.dropout());
      case LayerKind::kAdd: return std::make_shared<AddLayer>();
      case LayerKind::kConcat: return std::make_shared<ConcatLayer>();
      case LayerKind::kGlobalAveragePool: return std::make_shared<GlobalAveragePoolLayer>();
      case LayerKind::kPaddedShortcut: return padded_shortcut(message_.padded_shortcut());
      case LayerKind::kSoftmaxCrossEntropy: return softmax_cross_entropy(message_.softmax_cross_entropy());
      case LayerKind::kSoftmax: return std::make_shared<SoftmaxLayer>();
      case LayerKind::kAccuracy: return accuracy(message_.accuracy());
      case LayerKind::kBatchNorm: return batch_norm(message_.batch_norm());
      case LayerKind::kLayerNorm: return layer_norm(message_.layer_norm());
      case LayerKind::kEmbedding: return embedding(message_.embedding());
      case LayerKind::kInnerProduct: return inner_product(message_.inner_product());
      case LayerKind::kSquaredError: return squared_error(message_.squared_error());
      case LayerKind::KIND_NOT_SET: break;
    }
    report("", "has no kind; give it one, such as conv {}, dense {} or relu {}");
    return nullptr;
  }

  // `field`: path below the layer, "conv.filters"; "" for the layer itself. Does nothing if the message is empty.
  void report(const std::string& field, const std::string& message) {
    if (message.empty()) return;
    const std::string layer = message_.name().empty() ? path_ : fmt::format("layer '{}'", message_.name());
    issues_.add(field.empty() ? path_ : path_ + "." + field, layer + ": " + message);
  }

  template <typename Message>
  void check(const Message& message, const std::string& kind) {
    check_window(message, message.padding_mode(),
                 [&](const std::string& field, const std::string& problem) { report(kind + "." + field, problem); });
  }

  std::shared_ptr<const Layer> conv(const v1::Conv& message) {
    return std::make_shared<Conv2dLayer>(Conv2dLayer::Options{.filters = message.filters(),
                                                              .window = read_window(message),
                                                              .padding_mode = padding_mode(message),
                                                              .groups = message.groups(),
                                                              .has_bias = message.use_bias(),
                                                              .weight = parameter(message.weight(), "conv.weight"),
                                                              .bias = bias(message, "conv.bias")});
  }

  std::shared_ptr<const Layer> pool(const v1::Pool& message, engine::PoolKind kind, const std::string& field) {
    if (kind == engine::PoolKind::kMax && message.has_count_padding()) {
      report(field + ".count_padding", "count_padding is for average_pool; padding never wins a maximum");
    }
    if (message.ceil_mode() && message.padding_mode() == v1::Padding::SAME) {
      report(field + ".ceil_mode", "ceil_mode does nothing with padding_mode: SAME; remove one of them");
    }
    if (message.ceil_mode() &&
        (message.extra_padding() != 0 || message.extra_padding_height() != 0 || message.extra_padding_width() != 0)) {
      report(field + ".ceil_mode", "ceil_mode chooses the padding behind the last pixel; leave out extra_padding");
    }
    return std::make_shared<Pool2dLayer>(Pool2dLayer::Options{.kind = kind,
                                                              .window = read_window(message),
                                                              .padding_mode = padding_mode(message),
                                                              .ceil_mode = message.ceil_mode(),
                                                              .count_padding = message.count_padding()});
  }

  static DenseSplit split_of(v1::Dense::Split split) {
    if (split == v1::Dense::COLUMNS) return DenseSplit::kColumns;
    return split == v1::Dense::ROWS ? DenseSplit::kRows : DenseSplit::kNone;
  }

  std::shared_ptr<const Layer> dense(const v1::Dense& message) {
    return std::make_shared<DenseLayer>(DenseLayer::Options{.units = message.units(),
                                                            .has_bias = message.use_bias(),
                                                            .weight = parameter(message.weight(), "dense.weight"),
                                                            .bias = bias(message, "dense.bias"),
                                                            .split = split_of(message.split())});
  }

  std::shared_ptr<const Layer> embedding(const v1::Embedding& message) {
    return std::make_shared<EmbeddingLayer>(
        EmbeddingLayer::Options{.rows = message.rows(),
                                .width = message.width(),
                                .column = message.column(),
                                .weight = parameter(message.weight(), "embedding.weight")});
  }

  std::shared_ptr<const Layer> local_response_norm(const v1::LocalResponseNorm& message) {
    if (message.size() % 2 == 0) {
      report("local_response_norm.size", fmt::format("size must be odd, not {}", message.size()));
    }
    return std::make_shared<LocalResponseNormLayer>(LocalResponseNormLayer::Options{
        .size = message.size(), .alpha = message.alpha(), .beta = message.beta(), .k = message.k()});
  }

  std::shared_ptr<const Layer> leaky_relu(const v1::LeakyRelu& message) {
    return std::make_shared<ActivationLayer>(
        engine::ActivationFunction(engine::ActivationKind::kLeakyRelu, message.slope()));
  }

  std::shared_ptr<const Layer> prelu(const v1::PRelu& message) {
    return std::make_shared<PReluLayer>(parameter(message.weight(), "prelu.weight"));
  }

  std::shared_ptr<const Layer> inner_product(const v1::InnerProduct& message) {
    return std::make_shared<InnerProductLayer>(
        InnerProductLayer::Options{.has_bias = message.use_bias(), .bias = bias(message, "inner_product.bias")});
  }

  std::shared_ptr<const Layer> squared_error(const v1::SquaredError& message) {
    return std::make_shared<SquaredErrorLayer>(message.weight());
  }

  std::shared_ptr<const Layer> softmax_cross_entropy(const v1::SoftmaxCrossEntropy& message) {
    return std::make_shared<SoftmaxCrossEntropyLayer>(
        SoftmaxCrossEntropyLayer::Options{.weight = message.weight(), .label_smoothing = message.label_smoothing()});
  }

  std::shared_ptr<const Layer> accuracy(const v1::Accuracy& message) {
    FieldIssues issues;
    std::shared_ptr<const Layer> layer = read_accuracy(message, issues);
    for (const FieldIssue& issue : issues.all()) report("accuracy." + issue.path, issue.message);
    return layer;
  }

  std::shared_ptr<const Layer> dropout(const v1::Dropout& message) {
    return std::make_shared<DropoutLayer>(message.ratio());
  }

  std::shared_ptr<const Layer> padded_shortcut(const v1::PaddedShortcut& message) {
    return std::make_shared<PaddedShortcutLayer>(message.channels(), message.stride());
  }

  std::shared_ptr<const Layer> batch_norm(const v1::BatchNorm& message) {
    return std::make_shared<BatchNormLayer>(
        BatchNormLayer::Options{.epsilon = message.epsilon(),
                                .momentum = message.momentum(),
                                .scale = parameter(message.scale(), "batch_norm.scale"),
                                .shift = parameter(message.shift(), "batch_norm.shift")});
  }

  static std::shared_ptr<const Layer> layer_norm(const v1::LayerNorm& message) {
    return std::make_shared<LayerNormLayer>(message.epsilon(), message.affine());
  }

  template <typename Message>
  static PaddingMode padding_mode(const Message& message) {
    return message.padding_mode() == v1::Padding::SAME ? PaddingMode::kSame : PaddingMode::kExplicit;
  }

  template <typename Message>
  ParameterOptions bias(const Message& message, const std::string& field) {
    if (message.use_bias()) return parameter(message.bias(), field);
    if (message.has_bias()) report(field, "bias is described, but use_bias is false");
    return {};
  }

  ParameterOptions parameter(const v1::Parameter& message, const std::string& field) {
    return {initializer(message.initializer(), field + ".initializer"), message.learning_rate_multiplier(),
            message.decay_multiplier()};
  }

  Initializer initializer(const v1::Initializer& message, const std::string& field) {
    using Kind = v1::Initializer::KindCase;
    switch (message.kind_case()) {
      case Kind::kConstant: return {.kind = Initializer::Kind::kConstant, .value = message.constant().value()};
      case Kind::kUniform: {
        const v1::Initializer::Uniform& uniform = message.uniform();
        if (uniform.low() >= uniform.high()) {
          report(field + ".uniform.low",
                 fmt::format("low must be below high: {} is not below {}", uniform.low(), uniform.high()));
        }
        return {.kind = Initializer::Kind::kUniform, .low = uniform.low(), .high = uniform.high()};
      }
      case Kind::kGaussian: {
        const v1::Initializer::Gaussian& gaussian = message.gaussian();
        return {.kind = Initializer::Kind::kGaussian, .mean = gaussian.mean(), .stddev = gaussian.stddev()};
      }
      case Kind::kXavier: return {.kind = Initializer::Kind::kXavier};
      case Kind::kHe: return {.kind = Initializer::Kind::kHe};
      case Kind::KIND_NOT_SET: break;
    }
    engine::fail(engine::ErrorKind::kInternal, "layer '{}' lacks its defaults", message_.name());
  }

  const v1::Layer& message_;
  const std::string& path_;
  FieldIssues& issues_;
};

template <typename Message>
void fill_bias(Message& layer) {
  fill_field(layer, "bias");
  fill_fields(*layer.mutable_bias());
}

}  // namespace

void fill_layer(v1::Layer& layer) {
  if (layer.has_conv()) fill_window(*layer.mutable_conv());
  if (layer.has_max_pool()) fill_window(*layer.mutable_max_pool());
  if (layer.has_average_pool()) fill_window(*layer.mutable_average_pool());
  if (layer.has_average_pool()) fill_field(*layer.mutable_average_pool(), "count_padding");
  if (layer.conv().use_bias()) fill_bias(*layer.mutable_conv());
  if (layer.dense().use_bias()) fill_bias(*layer.mutable_dense());
  if (layer.inner_product().use_bias()) fill_bias(*layer.mutable_inner_product());
}

LayerDescription read_layer(const v1::Layer& message, const std::string& path, FieldIssues& issues) {
  return LayerReader(message, path, issues).read();
}

}  // namespace arbalest::dataflow
