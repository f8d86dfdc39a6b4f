// Convolutions by cuDNN, on images and weights in the order that its kernels read without a copy.
#include <algorithm>
#include <limits>
#include <optional>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/convolution/convolution_pass.h"
#include "engine/cuda/convolution/one_sided_padding.h"
#include "engine/cuda/convolution/pad_or_crop.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/transpose.h"
#include "engine/cuda/operators/bias.h"
#include "engine/cuda/operators/library_operators.h"
#include "engine/cuda/operators/linear.h"

namespace arbalest::engine::cuda {

namespace {

// The input with the zeros on one side, which cuDNN cannot add itself.
EvenlyPadded padded(const Conv2dSpec& spec) {
  const Shape& input = spec.input.shape();
  EvenlyPadded result = pad_evenly(input, spec.window);
  if (result.images != input && result.images.elements() > std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorKind::kDevice, "a GPU pads fewer than 2^31 elements at once, not {}; use smaller batches",
         to_string(result.images));
  }
  return result;
}

// With one channel or one pixel, the channels-last order equals the canonical order.
Arrangement arrangement_in(Order order, const Shape& shape, DType dtype) {
  return arrangement_of(make_layout(shape, dtype, order));
}

class Conv2d final : public LinearOperator {
 public:
  Conv2d(const Conv2dSpec& spec, const PrepareOptions& options, LibraryQuestions& questions);

 private:
  void run_forward(const LinearForward& of, const StreamContext& context) const override;
  void run_backward(const LinearBackward& of, const StreamContext& context) const override;

  // `spec`: with the images and the window that cuDNN gets.
  void choose_algorithms(const Conv2dSpec& spec, Precision precision, const LibraryQuestions::Turn& turn);
  void set_traits(const Conv2dSpec& spec, const PrepareOptions& options);
  // The output as a matrix [pixels, channels].
  Rows output_rows() const {
    return {output_shape_.elements() / output_shape_[1], output_shape_[1], type_,
            order_ == Order::kCanonical ? output_shape_[2] * output_shape_[3] : 1};
  }

  void read_input(const void* input, void* copy, const TeamStream& stream) const;
  void deliver_input_gradient(const void* produced, void* gradient, const TeamStream& stream) const;

  const Shape input_shape_;
  const EvenlyPadded padded_;
  const Shape read_shape_;  // shape of the input as cuDNN reads it
  const Shape weights_shape_;
  const Shape output_shape_;
  const Order order_;  // order of cuDNN's tensors
  const ConvolutionTensors tensors_;
  std::optional<ConvolutionPass> forward_;
  std::optional<ConvolutionPass> of_weights_;
  std::optional<ConvolutionPass> of_input_;

  // cuDNN reads and writes tensors of type_ in order_, with symmetric padding; other tensors are copied. Scratch holds
  // the weights or their gradient; then the input or its gradient; then cuDNN's workspace or the bias gradient's
  // partial sums. If backward reads a copy of the input, forward saves that copy.
  const Arrangement input_as_it_lies_;
  const Arrangement input_as_read_;
  Arrangement weights_as_they_lie_;
  Arrangement weights_gradient_as_it_lies_;
  const Arrangement weights_as_read_;
  const bool pads_input_;
  bool copies_input_ = false;  // pads_input_, or the order or type of elements changes
  bool copies_weights_ = false;
  bool copies_weights_gradient_ = false;
  std::size_t input_at_ = 0;
  std::size_t workspace_at_ = 0;
};

Conv2d::Conv2d(const Conv2dSpec& spec, const PrepareOptions& options, LibraryQuestions& questions)
    : LinearOperator(options, spec.bias, spec.activation, Kernels::kLibraries),
      input_shape_(spec.input.shape()),
      padded_(padded(spec)),
      read_shape_(padded_.images),
      weights_shape_(weights_shape(spec)),
      output_shape_(window_output_shape(input_shape_, spec.window, spec.filters)),
      order_(order_of_convolutions(options.precision)),
      tensors_(read_shape_, weights_shape_, output_shape_, type_, order_),
      input_as_it_lies_(arrangement_of(spec.input)),
      input_as_read_(arrangement_in(order_, read_shape_, type_)),
      weights_as_read_(arrangement_in(order_, weights_shape_, type_)),
      pads_input_(read_shape_ != input_shape_) {
  Conv2dSpec read = spec;
  read.input = make_layout(read_shape_, spec.input.dtype(), order_of(spec.input));
  read.window = padded_.window;
  choose_algorithms(read, options.precision, questions.take_turn());
  set_traits(spec, options);
}

void Conv2d::choose_algorithms(const Conv2dSpec& spec, Precision precision, const LibraryQuestions::Turn& turn) {
  using Kind = ConvolutionPass::Kind;
  forward_.emplace(Kind::kForward, tensors_, spec, precision, turn);
  if (training_) of_weights_.emplace(Kind::kWeightGradient, tensors_, spec, precision, turn);
  if (input_gradient_) of_input_.emplace(Kind::kInputGradient, tensors_, spec, precision, turn);
}

void Conv2d::set_traits(const Conv2dSpec& spec, const PrepareOptions& options) {
  traits_.output = make_layout(output_shape_, type_, order_);
  set_parameters(options, make_layout(weights_shape_, DType::kFloat32, order_), spec.filters);
  ARBALEST_CHECK(traits_.parameters[0].shape() == weights_shape_);

  weights_gradient_as_it_lies_ = arrangement_of(traits_.parameters[0]);
  weights_as_they_lie_ = {type_, weights_gradient_as_it_lies_.order};
  copies_input_ = pads_input_ || input_as_it_lies_ != input_as_read_;
  copies_weights_ = weights_as_they_lie_ != weights_as_read_;
  copies_weights_gradient_ = weights_gradient_as_it_lies_ != weights_as_read_;
  traits_.backward_reads_inputs = training_ && !copies_input_;
  if (training_ && copies_input_) traits_.saved_bytes = tensors_.input_bytes;
  if (copies_weights_ || (training_ && copies_weights_gradient_)) input_at_ = tensors_.weights_bytes;
  workspace_at_ = input_at_;
  if (copies_input_ && (!training_ || input_gradient_)) workspace_at_ += tensors_.input_bytes;
  std::size_t workspace = forward_->workspace_bytes();
  if (of_weights_.has_value()) workspace = std::max(workspace, of_weights_->workspace_bytes());
  if (of_input_.has_value()) workspace = std::max(workspace, of_input_->workspace_bytes());
  if (training_ && bias_) workspace = std::max(workspace, column_sum_bytes(output_rows()));
  traits_.scratch_bytes = workspace_at_ + aligned(workspace);
}

void Conv2d::read_input(const void* input, void* copy, const TeamStream& stream) const {
  if (pads_input_) {
    const Extent2d first{-padded_.before.height, -padded_.before.width};
    pad_or_crop(input, input_as_it_lies_, input_shape_, copy, input_as_read_, read_shape_, first, stream);
  } else {
    transpose(input, input_as_it_lies_, copy, input_as_read_, input_shape_, stream);
  }
}

void Conv2d::deliver_input_gradient(const void* produced, void* gradient, const TeamStream& stream) const {
  if (pads_input_) {
    pad_or_crop(produced, input_as_read_, read_shape_, gradient, input_as_it_lies_, input_shape_, padded_.before,
                stream);
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
  forward_->run(context, tensors_, {read, filters, of.output, of.scratch + workspace_at_});
  finish_output(of.output, of.bias, activation_, output_rows(), context.stream);
}

void Conv2d::run_backward(const LinearBackward& of, const StreamContext& context) const {
  std::byte* weights_copy = of.scratch;
  std::byte* workspace = of.scratch + workspace_at_;
  begin_gradient(of.output_gradient, of.output, activation_, of.bias_gradient, output_rows(),
                 reinterpret_cast<float*>(workspace), context.stream);
  void* weights_gradient = copies_weights_gradient_ ? static_cast<void*>(weights_copy) : of.weights_gradient;
  of_weights_->run(context, tensors_, {of.read, of.output_gradient, weights_gradient, workspace});
  if (copies_weights_gradient_) {
    transpose(weights_gradient, weights_as_read_, of.weights_gradient, weights_gradient_as_it_lies_, weights_shape_,
              context.stream);
  }
  if (of.input_gradient == nullptr) return;
  if (copies_weights_) {
    transpose(of.weights, weights_as_they_lie_, weights_copy, weights_as_read_, weights_shape_, context.stream);
  }
  void* produced = copies_input_ ? of.scratch + input_at_ : of.input_gradient;
  const void* filters = copies_weights_ ? weights_copy : of.weights;
  of_input_->run(context, tensors_, {filters, of.output_gradient, produced, workspace});
  if (copies_input_) deliver_input_gradient(produced, of.input_gradient, context.stream);
}

}  // namespace

std::unique_ptr<Operator> make_library_operator(const Conv2dSpec& spec, const PrepareOptions& options,
                                                LibraryQuestions& questions) {
  return std::make_unique<Conv2d>(spec, options, questions);
}

}  // namespace arbalest::engine::cuda
