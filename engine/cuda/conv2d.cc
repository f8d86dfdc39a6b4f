// Convolutions by cuDNN, on images and weights whose channels come last. These calls of cuDNN are its older interface,
// marked as deprecated in favor of its graphs; they stay in this file and in descriptors.cc.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "engine/alignment.h"
#include "engine/cuda/bias.h"
#include "engine/cuda/check.h"
#include "engine/cuda/descriptors.h"
#include "engine/cuda/layout.h"
#include "engine/cuda/linear.h"
#include "engine/cuda/operators.h"
#include "engine/cuda/pad_or_crop.h"
#include "engine/cuda/transpose.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

constexpr std::size_t kLargestWorkspace = std::size_t{256} << 20U;
constexpr float kOne = 1.0F;  // alpha and beta of every call: the result is written over what was there
constexpr float kZero = 0.0F;

// Whether an algorithm of this type computes with what `precision` promises. Tensor cores take float32 as TF32, and
// none may make float16 of it.
bool is_exact_enough(cudnnMathType_t math, Precision precision) {
  const bool tensor_cores = math == CUDNN_TENSOR_OP_MATH && precision != Precision::kFloat32;
  return math == CUDNN_FMA_MATH || math == CUDNN_DEFAULT_MATH || tensor_cores;
}

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
auto choose(const List& list, const Size& size, Precision precision, const char* what, const std::string& convolution) {
  std::array<Result, 16> results{};  // more than there are algorithms: some come with several math types
  int found = 0;
  const cudnnStatus_t listed = list(static_cast<int>(results.size()), &found, results.data());
  const bool none = CUDNN_STATUS_CATEGORY(listed) == CUDNN_STATUS_NOT_SUPPORTED;
  if (!none) check(listed, "asking cuDNN for convolution algorithms");
  for (const Result& result : std::span(results).first(static_cast<std::size_t>(found))) {
    const bool exact = is_exact_enough(result.mathType, precision);
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
  return fmt::format("input {}, {} filters of {} in {} groups, stride {}, padding {}, dilation {}",
                     to_string(spec.input.shape()), spec.filters, to_text(spec.window.kernel), spec.groups,
                     to_text(spec.window.stride), to_text(spec.window.padding), to_text(spec.window.dilation));
}

// The input with the rows and columns of zeros that cuDNN cannot add: those that are not on both sides.
Shape padded_shape(const Conv2dSpec& spec) {
  const Shape& input = spec.input.shape();
  const Extent2d& extra = spec.window.extra_padding;
  const Shape padded{input[0], input[1], input[2] + extra.height, input[3] + extra.width};
  if (padded != input && padded.elements() > std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorKind::kDevice, "a GPU pads fewer than 2^31 elements at once, not {}; use smaller batches",
         to_string(padded));
  }
  return padded;
}

// Channels last; with one channel or one pixel that is the canonical order.
Arrangement channels_last(const Shape& shape, DType dtype) {
  return arrangement_of(make_layout(shape, dtype, Order::kChannelsLast));
}

class Conv2d final : public LinearOperator {
 public:
  Conv2d(const Conv2dSpec& spec, const PrepareOptions& options);

 private:
  void run_forward(const LinearForward& of, const StreamContext& context) const override;
  void run_backward(const LinearBackward& of, const StreamContext& context) const override;

  void choose_algorithms(const Conv2dSpec& spec, Precision precision);
  void set_traits(const Conv2dSpec& spec, const PrepareOptions& options);
  Rows output_rows() const { return {output_shape_.elements() / output_shape_[1], output_shape_[1], type_}; }

  std::size_t read_bytes(const Shape& shape) const {
    return aligned(static_cast<std::size_t>(shape.elements()) * size_of(type_));
  }
  void read_input(const void* input, void* copy, cudaStream_t stream) const;
  void deliver_input_gradient(const void* produced, void* gradient, cudaStream_t stream) const;

  void convolve(const StreamContext& context, const void* read, const void* weights, void* output,
                void* workspace) const;
  void convolve_weights_gradient(const StreamContext& context, const void* read, const void* gradient, void* produced,
                                 void* workspace) const;
  void convolve_input_gradient(const StreamContext& context, const void* weights, const void* gradient, void* produced,
                               void* workspace) const;

  const Shape input_shape_;
  const Shape read_shape_;  // of the input as cuDNN reads it
  const Shape weights_shape_;
  const Shape output_shape_;
  const TensorDescriptor input_;
  const FilterDescriptor weights_;
  const TensorDescriptor output_;
  const ConvolutionDescriptor convolution_;
  Chosen<cudnnConvolutionFwdAlgo_t> forward_{};
  std::optional<Chosen<cudnnConvolutionBwdFilterAlgo_t>> of_weights_;
  std::optional<Chosen<cudnnConvolutionBwdDataAlgo_t>> of_input_;

  // cuDNN reads and writes tensors of type_ with their channels last and the same padding on both sides; others are
  // copied. In scratch: the weights or
  // their gradient; the input or its gradient; then cuDNN's workspace, or the bias gradient's partial sums. A copy of
  // the input that backward reads is saved.
  const Arrangement input_as_it_lies_;
  const Arrangement input_as_read_;
  Arrangement weights_as_they_lie_;
  Arrangement weights_gradient_as_it_lies_;
  const Arrangement weights_as_read_;
  const bool pads_input_;
  bool copies_input_ = false;  // pads_input_, or the order or the type of its elements changes
  bool copies_weights_ = false;
  bool copies_weights_gradient_ = false;
  std::size_t input_at_ = 0;
  std::size_t workspace_at_ = 0;
};

Conv2d::Conv2d(const Conv2dSpec& spec, const PrepareOptions& options)
    : LinearOperator(options, spec.bias, spec.activation),
      input_shape_(spec.input.shape()),
      read_shape_(padded_shape(spec)),
      weights_shape_(weights_shape(spec)),
      output_shape_(window_output_shape(input_shape_, spec.window, spec.filters)),
      input_(describe_images(read_shape_, type_)),
      weights_(describe_filters(weights_shape_, type_)),
      output_(describe_images(output_shape_, type_)),
      convolution_(describe_convolution(spec.window, spec.groups, options.precision)),
      input_as_it_lies_(arrangement_of(spec.input)),
      input_as_read_(channels_last(read_shape_, type_)),
      weights_as_read_(channels_last(weights_shape_, type_)),
      pads_input_(read_shape_ != input_shape_) {
  choose_algorithms(spec, options.precision);
  set_traits(spec, options);
}

void Conv2d::choose_algorithms(const Conv2dSpec& spec, Precision precision) {
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
      precision, "output", text);
  if (!training_) return;
  of_weights_ = choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
      [&](int count, int* found, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnn.get(), x, y, of, w, count, found, results);
      },
      [&](cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnn.get(), x, y, of, w, algorithm, bytes);
      },
      precision, "weight gradient", text);
  if (!input_gradient_) return;
  of_input_ = choose<cudnnConvolutionBwdDataAlgoPerf_t>(
      [&](int count, int* found, cudnnConvolutionBwdDataAlgoPerf_t* results) {
        return cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnn.get(), w, y, of, x, count, found, results);
      },
      [&](cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes) {
        return cudnnGetConvolutionBackwardDataWorkspaceSize(cudnn.get(), w, y, of, x, algorithm, bytes);
      },
      precision, "input gradient", text);
}

void Conv2d::set_traits(const Conv2dSpec& spec, const PrepareOptions& options) {
  traits_.output = make_layout(output_shape_, type_, Order::kChannelsLast);
  set_parameters(options, make_layout(weights_shape_, DType::kFloat32, Order::kChannelsLast), spec.filters);
  ARBALEST_CHECK(traits_.parameters[0].shape() == weights_shape_);

  weights_gradient_as_it_lies_ = arrangement_of(traits_.parameters[0]);
  weights_as_they_lie_ = {type_, weights_gradient_as_it_lies_.order};
  copies_input_ = pads_input_ || input_as_it_lies_ != input_as_read_;
  copies_weights_ = weights_as_they_lie_ != weights_as_read_;
  copies_weights_gradient_ = weights_gradient_as_it_lies_ != weights_as_read_;
  traits_.backward_reads_inputs = training_ && !copies_input_;
  if (training_ && copies_input_) traits_.saved_bytes = read_bytes(read_shape_);
  if (copies_weights_ || (training_ && copies_weights_gradient_)) input_at_ = read_bytes(weights_shape_);
  workspace_at_ = input_at_;
  if (copies_input_ && (!training_ || input_gradient_)) workspace_at_ += read_bytes(read_shape_);
  std::size_t workspace = forward_.workspace;
  if (of_weights_.has_value()) workspace = std::max(workspace, of_weights_->workspace);
  if (of_input_.has_value()) workspace = std::max(workspace, of_input_->workspace);
  if (training_ && bias_) workspace = std::max(workspace, column_sum_bytes(output_rows()));
  traits_.scratch_bytes = workspace_at_ + aligned(workspace);
}

void Conv2d::convolve(const StreamContext& context, const void* read, const void* weights, void* output,
                      void* workspace) const {
  ARBALEST_CUDA(cudnnConvolutionForward(context.cudnn, &kOne, input_.get(), read, weights_.get(), weights,
                                        convolution_.get(), forward_.algorithm, workspace, forward_.workspace, &kZero,
                                        output_.get(), output));
}

void Conv2d::convolve_weights_gradient(const StreamContext& context, const void* read, const void* gradient,
                                       void* produced, void* workspace) const {
  ARBALEST_CUDA(cudnnConvolutionBackwardFilter(context.cudnn, &kOne, input_.get(), read, output_.get(), gradient,
                                               convolution_.get(), of_weights_->algorithm, workspace,
                                               of_weights_->workspace, &kZero, weights_.get(), produced));
}

void Conv2d::convolve_input_gradient(const StreamContext& context, const void* weights, const void* gradient,
                                     void* produced, void* workspace) const {
  ARBALEST_CUDA(cudnnConvolutionBackwardData(context.cudnn, &kOne, weights_.get(), weights, output_.get(), gradient,
                                             convolution_.get(), of_input_->algorithm, workspace, of_input_->workspace,
                                             &kZero, input_.get(), produced));
}

void Conv2d::read_input(const void* input, void* copy, cudaStream_t stream) const {
  if (pads_input_) {
    pad_or_crop(input, input_as_it_lies_, input_shape_, copy, input_as_read_, read_shape_, stream);
  } else {
    transpose(input, input_as_it_lies_, copy, input_as_read_, input_shape_, stream);
  }
}

void Conv2d::deliver_input_gradient(const void* produced, void* gradient, cudaStream_t stream) const {
  if (pads_input_) {
    pad_or_crop(produced, input_as_read_, read_shape_, gradient, input_as_it_lies_, input_shape_, stream);
  } else {
    transpose(produced, input_as_read_, gradient, input_as_it_lies_, input_shape_, stream);
  }
}

void Conv2d::run_forward(const LinearForward& of, const StreamContext& context) const {
  const void* read = of.input;
  if (copies_input_) {
    void* copy = training_ ? of.saved : of.scratch + input_at_;
    read_input(of.input, copy, context.stream);
    read = copy;
  }
  const void* filters = of.weights;
  if (copies_weights_) {
    transpose(of.weights, weights_as_they_lie_, of.scratch, weights_as_read_, weights_shape_, context.stream);
    filters = of.scratch;
  }
  convolve(context, read, filters, of.output, of.scratch + workspace_at_);
  finish_output(of.output, of.bias, activation_, output_rows(), context.stream);
}

void Conv2d::run_backward(const LinearBackward& of, const StreamContext& context) const {
  std::byte* weights_copy = of.scratch;
  std::byte* workspace = of.scratch + workspace_at_;
  begin_gradient(of.output_gradient, of.output, activation_, of.bias_gradient, output_rows(),
                 reinterpret_cast<float*>(workspace), context.stream);
  void* weights_gradient = copies_weights_gradient_ ? static_cast<void*>(weights_copy) : of.weights_gradient;
  convolve_weights_gradient(context, of.read, of.output_gradient, weights_gradient, workspace);
  if (copies_weights_gradient_) {
    transpose(weights_gradient, weights_as_read_, of.weights_gradient, weights_gradient_as_it_lies_, weights_shape_,
              context.stream);
  }
  if (of.input_gradient == nullptr) return;
  if (copies_weights_) {
    transpose(of.weights, weights_as_they_lie_, weights_copy, weights_as_read_, weights_shape_, context.stream);
  }
  void* produced = copies_input_ ? of.scratch + input_at_ : of.input_gradient;
  convolve_input_gradient(context, copies_weights_ ? weights_copy : of.weights, of.output_gradient, produced,
                          workspace);
  if (copies_input_) deliver_input_gradient(produced, of.input_gradient, context.stream);
}

}  // namespace

std::unique_ptr<Operator> make_operator(const Conv2dSpec& spec, const PrepareOptions& options) {
  return std::make_unique<Conv2d>(spec, options);
}

}  // namespace arbalest::engine::cuda
