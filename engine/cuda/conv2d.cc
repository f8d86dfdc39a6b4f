// Convolutions by cuDNN, on images and weights whose channels come last. These calls of cuDNN are its older interface,
// marked as deprecated in favor of its graphs; they stay in this file and in descriptors.cc.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "engine/cuda/bias.h"
#include "engine/cuda/check.h"
#include "engine/cuda/descriptors.h"
#include "engine/cuda/layout.h"
#include "engine/cuda/operators.h"
#include "engine/cuda/stream.h"
#include "engine/cuda/transpose.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

constexpr std::size_t kLargestWorkspace = std::size_t{256} << 20U;
constexpr float kOne = 1.0F;  // alpha and beta of every call: the result is written over what was there
constexpr float kZero = 0.0F;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

template <typename Algorithm>
struct Chosen {
  Algorithm algorithm;
  std::size_t workspace;  // bytes
};

// The first of cuDNN's candidates, which it sorts by expected time, that repeats its results and needs no large
// workspace.
//   list(count, &found, results): cudnnGetConvolution...Algorithm_v7
//   size(algorithm, &bytes): cudnnGetConvolution...WorkspaceSize
template <typename Result, typename List, typename Size>
auto choose(const List& list, const Size& size, const char* what, const std::string& convolution) {
  std::array<Result, 16> results{};  // more than there are algorithms: some come with several math types
  int found = 0;
  const cudnnStatus_t listed = list(static_cast<int>(results.size()), &found, results.data());
  const bool none = CUDNN_STATUS_CATEGORY(listed) == CUDNN_STATUS_NOT_SUPPORTED;
  if (!none) check(listed, "asking cuDNN for convolution algorithms");
  for (const Result& result : std::span(results).first(static_cast<std::size_t>(found))) {
    const bool exact = result.mathType == CUDNN_FMA_MATH || result.mathType == CUDNN_DEFAULT_MATH;
    if (result.status != CUDNN_STATUS_SUCCESS || result.determinism != CUDNN_DETERMINISTIC || !exact) continue;
    // result.memory is for result.mathType; what counts is the descriptor's.
    std::size_t bytes = 0;
    if (size(result.algo, &bytes) != CUDNN_STATUS_SUCCESS || bytes > kLargestWorkspace) continue;
    return Chosen<decltype(result.algo)>{result.algo, bytes};
  }
  fail(ErrorKind::kDevice,
       "cuDNN has no repeatable algorithm with a workspace of at most {} MiB for the {} of this convolution: {}",
       kLargestWorkspace >> 20U, what, convolution);
}

std::string to_text(const Extent2d& extent) { return fmt::format("{}x{}", extent.height, extent.width); }

std::string to_text(const Conv2dSpec& spec) {
  return fmt::format("input {}, {} filters of {}, stride {}, padding {}", to_string(spec.input.shape()), spec.filters,
                     to_text(spec.window.kernel), to_text(spec.window.stride), to_text(spec.window.padding));
}

Shape weights_shape(const Conv2dSpec& spec) {
  return {spec.filters, spec.input.shape()[1], spec.window.kernel.height, spec.window.kernel.width};
}

Shape output_shape(const Conv2dSpec& spec) {
  const Shape& input = spec.input.shape();
  const Window& window = spec.window;
  ARBALEST_CHECK(input.rank() == 4 && spec.filters > 0);
  const std::int64_t height =
      window_positions(input[2], window.kernel.height, window.stride.height, window.padding.height);
  const std::int64_t width = window_positions(input[3], window.kernel.width, window.stride.width, window.padding.width);
  ARBALEST_CHECK(height > 0 && width > 0);
  return {input[0], spec.filters, height, width};
}

// False where the elements lie in another order; canonical order with one channel or one pixel is channels-last order.
bool has_channels_last(const Layout& layout) {
  return layout == make_layout(layout.shape(), layout.dtype(), Order::kChannelsLast);
}

class Conv2d final : public Operator {
 public:
  Conv2d(const Conv2dSpec& spec, const PrepareOptions& options);

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override;
  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override;

 private:
  void choose_algorithms(const Conv2dSpec& spec);
  void set_traits(const Conv2dSpec& spec, const PrepareOptions& options);

  void run_forward(const StreamContext& context, const float* read, const float* weights, float* output,
                   void* workspace) const;
  void run_weights_gradient(const StreamContext& context, const float* read, const float* gradient, float* produced,
                            void* workspace) const;
  void run_input_gradient(const StreamContext& context, const float* weights, const float* gradient, float* produced,
                          void* workspace) const;

  const bool training_;
  const bool input_gradient_;
  const bool bias_;
  const Shape input_shape_;
  const Shape weights_shape_;
  const Shape output_shape_;
  const TensorDescriptor input_;
  const FilterDescriptor weights_;
  const TensorDescriptor output_;
  const ConvolutionDescriptor convolution_;
  Chosen<cudnnConvolutionFwdAlgo_t> forward_{};
  std::optional<Chosen<cudnnConvolutionBwdFilterAlgo_t>> of_weights_;
  std::optional<Chosen<cudnnConvolutionBwdDataAlgo_t>> of_input_;

  // Tensors that lie in canonical order are copied. In scratch: the weights or their gradient; the input or its
  // gradient; then cuDNN's workspace, or column_sum's partial sums. A copy of the input that backward reads is saved.
  bool copies_input_ = false;
  bool copies_weights_ = false;
  std::size_t input_at_ = 0;
  std::size_t workspace_at_ = 0;
};

Conv2d::Conv2d(const Conv2dSpec& spec, const PrepareOptions& options)
    : training_(options.mode == OperatorMode::kTraining),
      input_gradient_(training_ && options.input_gradient),
      bias_(spec.bias),
      input_shape_(spec.input.shape()),
      weights_shape_(weights_shape(spec)),
      output_shape_(output_shape(spec)),
      input_(describe_images(input_shape_)),
      weights_(describe_filters(weights_shape_)),
      output_(describe_images(output_shape_)),
      convolution_(describe_convolution(spec.window)) {
  choose_algorithms(spec);
  set_traits(spec, options);
}

void Conv2d::choose_algorithms(const Conv2dSpec& spec) {
  Handle<cudnnHandle_t, cudnnDestroy> cudnn;
  ARBALEST_CUDA(cudnnCreate(cudnn.put()));
  const cudnnTensorDescriptor_t x = input_.get(), y = output_.get();
  const cudnnFilterDescriptor_t w = weights_.get();
  const cudnnConvolutionDescriptor_t of = convolution_.get();
  const std::string text = to_text(spec);
  forward_ = choose<cudnnConvolutionFwdAlgoPerf_t>(
      [&](int count, int* found, cudnnConvolutionFwdAlgoPerf_t* results) {
        return cudnnGetConvolutionForwardAlgorithm_v7(cudnn.get(), x, w, of, y, count, found, results);
      },
      [&](cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes) {
        return cudnnGetConvolutionForwardWorkspaceSize(cudnn.get(), x, w, of, y, algorithm, bytes);
      },
      "output", text);
  if (!training_) return;
  of_weights_ = choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
      [&](int count, int* found, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnn.get(), x, y, of, w, count, found, results);
      },
      [&](cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnn.get(), x, y, of, w, algorithm, bytes);
      },
      "weight gradient", text);
  if (!input_gradient_) return;
  of_input_ = choose<cudnnConvolutionBwdDataAlgoPerf_t>(
      [&](int count, int* found, cudnnConvolutionBwdDataAlgoPerf_t* results) {
        return cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnn.get(), w, y, of, x, count, found, results);
      },
      [&](cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes) {
        return cudnnGetConvolutionBackwardDataWorkspaceSize(cudnn.get(), w, y, of, x, algorithm, bytes);
      },
      "input gradient", text);
}

void Conv2d::set_traits(const Conv2dSpec& spec, const PrepareOptions& options) {
  traits_.output = make_layout(output_shape_, DType::kFloat32, Order::kChannelsLast);
  traits_.parameters = options.parameters;
  if (traits_.parameters.empty()) {
    traits_.parameters.push_back(make_layout(weights_shape_, DType::kFloat32, Order::kChannelsLast));
    if (bias_) traits_.parameters.push_back(make_layout({spec.filters}, DType::kFloat32, Order::kCanonical));
  }
  ARBALEST_CHECK(traits_.parameters.size() == (bias_ ? 2U : 1U));
  ARBALEST_CHECK(traits_.parameters[0].shape() == weights_shape_);

  copies_input_ = !has_channels_last(spec.input);
  copies_weights_ = !has_channels_last(traits_.parameters[0]);
  traits_.backward_reads_inputs = training_ && !copies_input_;
  if (training_ && copies_input_) traits_.saved_bytes = aligned(spec.input.bytes());
  if (copies_weights_) input_at_ = aligned(traits_.parameters[0].bytes());
  workspace_at_ = input_at_;
  if (copies_input_ && (!training_ || input_gradient_)) workspace_at_ += aligned(spec.input.bytes());
  std::size_t workspace = forward_.workspace;
  if (of_weights_.has_value()) workspace = std::max(workspace, of_weights_->workspace);
  if (of_input_.has_value()) workspace = std::max(workspace, of_input_->workspace);
  if (training_ && bias_) {
    const std::int64_t rows = output_shape_.elements() / spec.filters;
    workspace = std::max(workspace, column_sum_bytes(rows, spec.filters));
  }
  traits_.scratch_bytes = workspace_at_ + aligned(workspace);
}

void Conv2d::run_forward(const StreamContext& context, const float* read, const float* weights, float* output,
                         void* workspace) const {
  ARBALEST_CUDA(cudnnConvolutionForward(context.cudnn, &kOne, input_.get(), read, weights_.get(), weights,
                                        convolution_.get(), forward_.algorithm, workspace, forward_.workspace, &kZero,
                                        output_.get(), output));
}

void Conv2d::run_weights_gradient(const StreamContext& context, const float* read, const float* gradient,
                                  float* produced, void* workspace) const {
  ARBALEST_CUDA(cudnnConvolutionBackwardFilter(context.cudnn, &kOne, input_.get(), read, output_.get(), gradient,
                                               convolution_.get(), of_weights_->algorithm, workspace,
                                               of_weights_->workspace, &kZero, weights_.get(), produced));
}

void Conv2d::run_input_gradient(const StreamContext& context, const float* weights, const float* gradient,
                                float* produced, void* workspace) const {
  ARBALEST_CUDA(cudnnConvolutionBackwardData(context.cudnn, &kOne, weights_.get(), weights, output_.get(), gradient,
                                             convolution_.get(), of_input_->algorithm, workspace, of_input_->workspace,
                                             &kZero, input_.get(), produced));
}

void Conv2d::forward(Stream& stream, const char* label, const ForwardOperands& operands) const {
  const auto* input = static_cast<const float*>(operands.inputs[0]);
  const auto* weights = static_cast<const float*>(operands.parameters[0]);
  const auto* bias = bias_ ? static_cast<const float*>(operands.parameters[1]) : nullptr;
  auto* output = static_cast<float*>(operands.output);
  auto* saved = static_cast<float*>(operands.saved);
  auto* scratch = static_cast<std::byte*>(operands.scratch);
  as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
    const float* read = input;
    if (copies_input_) {
      auto* copy = training_ ? saved : reinterpret_cast<float*>(scratch + input_at_);
      transpose(input, copy, input_shape_, Order::kCanonical, Order::kChannelsLast, context.stream);
      read = copy;
    }
    const float* filters = weights;
    if (copies_weights_) {
      auto* copy = reinterpret_cast<float*>(scratch);
      transpose(weights, copy, weights_shape_, Order::kCanonical, Order::kChannelsLast, context.stream);
      filters = copy;
    }
    run_forward(context, read, filters, output, scratch + workspace_at_);
    const std::int64_t channels = output_shape_[1];
    if (bias != nullptr) add_bias(output, bias, output_shape_.elements() / channels, channels, context.stream);
  });
}

void Conv2d::backward(Stream& stream, const char* label, const BackwardOperands& operands) const {
  ARBALEST_CHECK(training_);
  const auto* read = static_cast<const float*>(copies_input_ ? operands.saved : operands.inputs[0]);
  const auto* weights = static_cast<const float*>(operands.parameters[0]);
  const auto* gradient = static_cast<const float*>(operands.output_gradient);
  auto* weights_gradient = static_cast<float*>(operands.parameter_gradients[0]);
  auto* bias_gradient = bias_ ? static_cast<float*>(operands.parameter_gradients[1]) : nullptr;
  auto* input_gradient = input_gradient_ ? static_cast<float*>(operands.input_gradients[0]) : nullptr;
  auto* scratch = static_cast<std::byte*>(operands.scratch);
  as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
    auto* weights_copy = reinterpret_cast<float*>(scratch);
    auto* workspace = scratch + workspace_at_;
    run_weights_gradient(context, read, gradient, copies_weights_ ? weights_copy : weights_gradient, workspace);
    if (copies_weights_) {
      transpose(weights_copy, weights_gradient, weights_shape_, Order::kChannelsLast, Order::kCanonical,
                context.stream);
    }
    if (bias_gradient != nullptr) {
      const std::int64_t channels = output_shape_[1];
      column_sum(gradient, bias_gradient, output_shape_.elements() / channels, channels,
                 reinterpret_cast<float*>(workspace), context.stream);
    }
    if (input_gradient == nullptr) return;
    if (copies_weights_) {
      transpose(weights, weights_copy, weights_shape_, Order::kCanonical, Order::kChannelsLast, context.stream);
    }
    auto* produced = copies_input_ ? reinterpret_cast<float*>(scratch + input_at_) : input_gradient;
    run_input_gradient(context, copies_weights_ ? weights_copy : weights, gradient, produced, workspace);
    if (copies_input_) {
      transpose(produced, input_gradient, input_shape_, Order::kChannelsLast, Order::kCanonical, context.stream);
    }
  });
}

}  // namespace

std::unique_ptr<Operator> make_operator(const Conv2dSpec& spec, const PrepareOptions& options) {
  return std::make_unique<Conv2d>(spec, options);
}

}  // namespace arbalest::engine::cuda
