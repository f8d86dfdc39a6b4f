#include "dataflow/models/layer_reader.h"

#include <optional>

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
#include "dataflow/layers/outputs/classification.h"
#include "dataflow/layers/outputs/softmax.h"
#include "dataflow/layers/outputs/squared_error.h"
#include "dataflow/models/accuracy_reader.h"

namespace arbalest::dataflow {

namespace {

// Generous limits, small enough that no product of a few of them overflows.
constexpr Range<int> kFilters{1, 65536};
constexpr Range<int> kUnits{1, 1048576};
constexpr Range<int> kRows{1, 1'000'000'000};
constexpr Range<int> kColumns{0, 1023};
constexpr Range<int> kStrideLength{1, 1024};
constexpr Range<int> kDilationLength{1, 1024};
constexpr Range<int> kPaddingLength{0, 1024};
constexpr Range<int> kExtraPaddingLength{-1024, 1024};
constexpr Range<float> kLossWeight = above(0.0F, 1000.0F);
constexpr Range<float> kVarianceEpsilon{1e-10F, 1.0F};
constexpr Range<float> kStatisticMomentum = above(0.0F, 1.0F);
constexpr Range<int> kNormSize{1, 1023};
constexpr Range<float> kNormAlpha{0.0F, 1000.0F};
constexpr Range<float> kNormBeta{0.0F, 10.0F};
constexpr Range<float> kNormOffset{1e-5F, 1000.0F};
constexpr Range<float> kSlope{0.0F, 1.0F};
constexpr Range<float> kMultiplier{0.0F, 1000.0F};
// Limits of initial values: sums of thousands of their products stay far from the ends of float32.
constexpr Range<float> kInitialValue{-1000.0F, 1000.0F};
constexpr Range<float> kInitialStddev{1e-6F, 1000.0F};

// Reads the fields of one layer and reports what is wrong with them under the layer's name.
class LayerReader {
 public:
  LayerReader(const v1::Layer& message, const std::string& path, FieldIssues& issues)
      : message_(message), path_(path), issues_(issues) {}

  LayerDescription read() {
    const std::size_t issues_before = issues_.all().size();
    LayerDescription description{message_.name(), {message_.input().begin(), message_.input().end()}, read_kind()};
    description.is_sound = issues_.all().size() == issues_before;
    return description;
  }

 private:
  using LayerKind = v1::Layer::KindCase;

  // Returns null if the layer has no kind.
  std::shared_ptr<const Layer> read_kind() {
    switch (message_.kind_case()) {
      case LayerKind::kConv:
        return conv(message_.conv());
      case LayerKind::kMaxPool:
        return pool(message_.max_pool(), engine::PoolKind::kMax, "max_pool");
      case LayerKind::kAveragePool:
        return pool(message_.average_pool(), engine::PoolKind::kAverage, "average_pool");
      case LayerKind::kDense:
        return dense(message_.dense());
      case LayerKind::kFlatten:
        return std::make_shared<FlattenLayer>();
      case LayerKind::kRelu:
        return std::make_shared<ActivationLayer>(engine::ActivationKind::kRelu);
      case LayerKind::kTanh:
        return std::make_shared<ActivationLayer>(engine::ActivationKind::kTanh);
      case LayerKind::kSigmoid:
        return std::make_shared<ActivationLayer>(engine::ActivationKind::kSigmoid);
      case LayerKind::kLocalResponseNorm:
        return local_response_norm(message_.local_response_norm());
      case LayerKind::kLeakyRelu:
        return leaky_relu(message_.leaky_relu());
      case LayerKind::kGelu:
        return std::make_shared<ActivationLayer>(engine::ActivationKind::kGelu);
      case LayerKind::kSilu:
        return std::make_shared<ActivationLayer>(engine::ActivationKind::kSilu);
      case LayerKind::kRelu6:
        return std::make_shared<ActivationLayer>(engine::ActivationKind::kRelu6);
      case LayerKind::kHardSwish:
        return std::make_shared<ActivationLayer>(engine::ActivationKind::kHardSwish);
      case LayerKind::kDropout:
        return dropout(message_.dropout());
      case LayerKind::kAdd:
        return std::make_shared<AddLayer>();
      case LayerKind::kConcat:
        return std::make_shared<ConcatLayer>();
      case LayerKind::kGlobalAveragePool:
        return std::make_shared<GlobalAveragePoolLayer>();
      case LayerKind::kPaddedShortcut:
        return padded_shortcut(message_.padded_shortcut());
      case LayerKind::kSoftmaxCrossEntropy:
        return softmax_cross_entropy(message_.softmax_cross_entropy());
      case LayerKind::kSoftmax:
        return std::make_shared<SoftmaxLayer>();
      case LayerKind::kAccuracy:
        return accuracy(message_.accuracy());
      case LayerKind::kBatchNorm:
        return batch_norm(message_.batch_norm());
      case LayerKind::kEmbedding:
        return embedding(message_.embedding());
      case LayerKind::kInnerProduct:
        return inner_product(message_.inner_product());
      case LayerKind::kSquaredError:
        return squared_error(message_.squared_error());
      case LayerKind::KIND_NOT_SET:
        break;
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

  std::shared_ptr<const Layer> conv(const v1::Conv& message) {
    report("conv.filters", message.has_filters() ? out_of_range("filters", message.filters(), kFilters)
                                                 : "filters is missing: how many channels the output has");
    report("conv.groups", out_of_range("groups", message.groups(), kFilters));
    engine::Window slides = window(message, "conv");
    slides.dilation =
        extent(length("dilation", message.has_dilation(), message.dilation(), message.has_dilation_height(),
                      message.dilation_height(), message.has_dilation_width(), message.dilation_width()),
               "conv", kDilationLength);
    return std::make_shared<Conv2dLayer>(Conv2dLayer::Options{.filters = message.filters(),
                                                              .window = slides,
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
                                                              .window = window(message, field),
                                                              .padding_mode = padding_mode(message),
                                                              .ceil_mode = message.ceil_mode(),
                                                              .count_padding = message.count_padding()});
  }

  static DenseSplit split_of(v1::Dense::Split split) {
    if (split == v1::Dense::COLUMNS) return DenseSplit::kColumns;
    return split == v1::Dense::ROWS ? DenseSplit::kRows : DenseSplit::kNone;
  }

  std::shared_ptr<const Layer> dense(const v1::Dense& message) {
    report("dense.units", message.has_units() ? out_of_range("units", message.units(), kUnits)
                                              : "units is missing: how many features the output has");
    return std::make_shared<DenseLayer>(DenseLayer::Options{.units = message.units(),
                                                            .has_bias = message.use_bias(),
                                                            .weight = parameter(message.weight(), "dense.weight"),
                                                            .bias = bias(message, "dense.bias"),
                                                            .split = split_of(message.split())});
  }

  std::shared_ptr<const Layer> embedding(const v1::Embedding& message) {
    report("embedding.rows", message.has_rows() ? out_of_range("rows", message.rows(), kRows)
                                                : "rows is missing: how many ids there are");
    report("embedding.width", message.has_width() ? out_of_range("width", message.width(), kUnits)
                                                  : "width is missing: how many features the output has");
    report("embedding.column", out_of_range("column", message.column(), kColumns));
    return std::make_shared<EmbeddingLayer>(
        EmbeddingLayer::Options{.rows = message.rows(),
                                .width = message.width(),
                                .column = message.column(),
                                .weight = parameter(message.weight(), "embedding.weight")});
  }

  std::shared_ptr<const Layer> local_response_norm(const v1::LocalResponseNorm& message) {
    const auto check = [&](const char* name, const std::string& message_or_none) {
      report(fmt::format("local_response_norm.{}", name), message_or_none);
    };
    check("size", out_of_range("size", message.size(), kNormSize));
    if (message.size() % 2 == 0) check("size", fmt::format("size must be odd, not {}", message.size()));
    check("alpha", out_of_range("alpha", message.alpha(), kNormAlpha));
    check("beta", out_of_range("beta", message.beta(), kNormBeta));
    check("k", out_of_range("k", message.k(), kNormOffset));
    return std::make_shared<LocalResponseNormLayer>(LocalResponseNormLayer::Options{
        .size = message.size(), .alpha = message.alpha(), .beta = message.beta(), .k = message.k()});
  }

  std::shared_ptr<const Layer> leaky_relu(const v1::LeakyRelu& message) {
    report("leaky_relu.slope", out_of_range("slope", message.slope(), kSlope));
    return std::make_shared<ActivationLayer>(
        engine::ActivationFunction(engine::ActivationKind::kLeakyRelu, message.slope()));
  }

  std::shared_ptr<const Layer> inner_product(const v1::InnerProduct& message) {
    return std::make_shared<InnerProductLayer>(
        InnerProductLayer::Options{.has_bias = message.use_bias(), .bias = bias(message, "inner_product.bias")});
  }

  std::shared_ptr<const Layer> squared_error(const v1::SquaredError& message) {
    report("squared_error.weight", out_of_range("weight", message.weight(), kLossWeight));
    return std::make_shared<SquaredErrorLayer>(message.weight());
  }

  std::shared_ptr<const Layer> softmax_cross_entropy(const v1::SoftmaxCrossEntropy& message) {
    report("softmax_cross_entropy.weight", out_of_range("weight", message.weight(), kLossWeight));
    report("softmax_cross_entropy.label_smoothing",
           out_of_range("label_smoothing", message.label_smoothing(), below(0.0F, 1.0F)));
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
    report("dropout.ratio", out_of_range("ratio", message.ratio(), below(0.0F, 1.0F)));
    return std::make_shared<DropoutLayer>(message.ratio());
  }

  std::shared_ptr<const Layer> padded_shortcut(const v1::PaddedShortcut& message) {
    report("padded_shortcut.channels", message.has_channels() ? out_of_range("channels", message.channels(), kFilters)
                                                              : "channels is missing: how many the output has");
    report("padded_shortcut.stride", out_of_range("stride", message.stride(), kStrideLength));
    return std::make_shared<PaddedShortcutLayer>(message.channels(), message.stride());
  }

  std::shared_ptr<const Layer> batch_norm(const v1::BatchNorm& message) {
    report("batch_norm.epsilon", out_of_range("epsilon", message.epsilon(), kVarianceEpsilon));
    report("batch_norm.momentum", out_of_range("momentum", message.momentum(), kStatisticMomentum));
    return std::make_shared<BatchNormLayer>(
        BatchNormLayer::Options{.epsilon = message.epsilon(),
                                .momentum = message.momentum(),
                                .scale = parameter(message.scale(), "batch_norm.scale"),
                                .shift = parameter(message.shift(), "batch_norm.shift")});
  }

  // A length that is given once for both directions or once for each.
  struct Length {
    std::string name;
    std::optional<int> both;
    std::optional<int> height;
    std::optional<int> width;

    bool is_given() const noexcept { return both || height || width; }
  };

  engine::Extent2d extent(const Length& length, const std::string& field, const Range<int>& range) {
    const std::string height = length.name + "_height";
    const std::string width = length.name + "_width";
    if (length.both && (length.height || length.width)) {
      report(field + "." + length.name,
             fmt::format("{} is given for both directions at once and again for one of them; "
                         "remove {} or {}",
                         length.name, length.name, length.height ? height : width));
    } else if (!length.both && length.height.has_value() != length.width.has_value()) {
      report(field + "." + (length.height ? height : width),
             fmt::format("{} is given without {}", length.height ? height : width, length.height ? width : height));
    } else if (!length.both && !length.height) {
      report(field + "." + length.name, fmt::format("{} is missing", length.name));
    }
    if (length.both) report(field + "." + length.name, out_of_range(length.name, *length.both, range));
    if (length.height) report(field + "." + height, out_of_range(height, *length.height, range));
    if (length.width) report(field + "." + width, out_of_range(width, *length.width, range));
    return {length.both.value_or(length.height.value_or(0)), length.both.value_or(length.width.value_or(0))};
  }

  static Length length(const char* name, bool has_both, int both, bool has_height, int height, bool has_width,
                       int width) {
    const auto given = [](bool is_set, int value) { return is_set ? std::optional<int>(value) : std::nullopt; };
    return {name, given(has_both, both), given(has_height, height), given(has_width, width)};
  }

  template <typename Message>
  static PaddingMode padding_mode(const Message& message) {
    return message.padding_mode() == v1::Padding::SAME ? PaddingMode::kSame : PaddingMode::kExplicit;
  }

  template <typename Message>
  engine::Window window(const Message& message, const std::string& field) {
    const Length kernel = length("kernel", message.has_kernel(), message.kernel(), message.has_kernel_height(),
                                 message.kernel_height(), message.has_kernel_width(), message.kernel_width());
    const Length stride = length("stride", message.has_stride(), message.stride(), message.has_stride_height(),
                                 message.stride_height(), message.has_stride_width(), message.stride_width());
    const Length padding = length("padding", message.has_padding(), message.padding(), message.has_padding_height(),
                                  message.padding_height(), message.has_padding_width(), message.padding_width());
    engine::Window window;
    window.kernel = extent(kernel, field, kKernelLength);
    // A missing stride defaults to the kernel. If the kernel is wrong, its issue has been reported already.
    if (stride.is_given()) window.stride = extent(stride, field, kStrideLength);
    const Length extra = length("extra_padding", message.has_extra_padding(), message.extra_padding(),
                                message.has_extra_padding_height(), message.extra_padding_height(),
                                message.has_extra_padding_width(), message.extra_padding_width());
    if (message.padding_mode() == v1::Padding::SAME) {
      report_beside_same(padding, field);
      report_beside_same(extra, field);
    } else {
      window.padding = extent(padding, field, kPaddingLength);
      if (extra.is_given()) window.extra_padding = extent(extra, field, kExtraPaddingLength);
      report_below_none(extra, window, field);
    }
    return window;
  }

  // Reports extra padding that leaves fewer than no pixels below or to the right.
  void report_below_none(const Length& extra, const engine::Window& window, const std::string& field) {
    const auto check = [&](std::int64_t padding, std::int64_t more, const std::string& name) {
      if (padding < 0 || padding + more >= 0) return;
      report(field + "." + name,
             fmt::format("{} must be at least {}, which leaves no padding there, not {}", name, -padding, more));
    };
    check(window.padding.height, window.extra_padding.height, extra.name + (extra.both ? "" : "_height"));
    check(window.padding.width, window.extra_padding.width, extra.name + (extra.both ? "" : "_width"));
  }

  void report_beside_same(const Length& length, const std::string& field) {
    if (!length.is_given()) return;
    const std::string name = length.name + (length.both ? "" : length.height ? "_height" : "_width");
    report(field + "." + name, fmt::format("{} is given, but padding_mode: SAME chooses it; remove one of them", name));
  }

  template <typename Message>
  ParameterOptions bias(const Message& message, const std::string& field) {
    if (message.use_bias()) return parameter(message.bias(), field);
    if (message.has_bias()) report(field, "bias is described, but use_bias is false");
    return {};
  }

  ParameterOptions parameter(const v1::Parameter& message, const std::string& field) {
    report(field + ".learning_rate_multiplier",
           out_of_range("learning_rate_multiplier", message.learning_rate_multiplier(), kMultiplier));
    report(field + ".decay_multiplier", out_of_range("decay_multiplier", message.decay_multiplier(), kMultiplier));
    return {initializer(message.initializer(), field + ".initializer"), message.learning_rate_multiplier(),
            message.decay_multiplier()};
  }

  Initializer initializer(const v1::Initializer& message, const std::string& field) {
    using Kind = v1::Initializer::KindCase;
    const auto check = [&](const char* name, const std::string& within, float value, const Range<float>& range) {
      report(fmt::format("{}.{}.{}", field, within, name), out_of_range(name, value, range));
    };
    switch (message.kind_case()) {
      case Kind::kConstant:
        check("value", "constant", message.constant().value(), kInitialValue);
        return {.kind = Initializer::Kind::kConstant, .value = message.constant().value()};
      case Kind::kUniform: {
        const v1::Initializer::Uniform& uniform = message.uniform();
        check("low", "uniform", uniform.low(), kInitialValue);
        check("high", "uniform", uniform.high(), kInitialValue);
        if (uniform.low() >= uniform.high()) {
          report(field + ".uniform.low",
                 fmt::format("low must be below high: {} is not below {}", uniform.low(), uniform.high()));
        }
        return {.kind = Initializer::Kind::kUniform, .low = uniform.low(), .high = uniform.high()};
      }
      case Kind::kGaussian: {
        const v1::Initializer::Gaussian& gaussian = message.gaussian();
        check("mean", "gaussian", gaussian.mean(), kInitialValue);
        check("stddev", "gaussian", gaussian.stddev(), kInitialStddev);
        return {.kind = Initializer::Kind::kGaussian, .mean = gaussian.mean(), .stddev = gaussian.stddev()};
      }
      case Kind::kXavier:
        return {.kind = Initializer::Kind::kXavier};
      case Kind::kHe:
        return {.kind = Initializer::Kind::kHe};
      case Kind::KIND_NOT_SET:
        break;
    }
    engine::fail(engine::ErrorKind::kInternal, "layer '{}' lacks its defaults", message_.name());
  }

  const v1::Layer& message_;
  const std::string& path_;
  FieldIssues& issues_;
};

}  // namespace

LayerDescription read_layer(const v1::Layer& message, const std::string& path, FieldIssues& issues) {
  return LayerReader(message, path, issues).read();
}

}  // namespace arbalest::dataflow
