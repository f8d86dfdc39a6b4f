#include "engine/ops/batch_norm.h"

#include <optional>

#include "engine/base/alignment.h"
#include "engine/cuda/kernels/transpose.h"
#include "engine/cuda/operators/batch_norm.h"
#include "engine/cuda/operators/operators.h"
#include "engine/cuda/runtime/stream.h"

namespace arbalest::engine::cuda {

namespace {

template <typename T>
class BatchNorm final : public Operator {
 public:
  BatchNorm(const BatchNormSpec& spec, const PrepareOptions& options)
      : of_(geometry_of(spec.input)),
        epsilon_(spec.epsilon),
        relu_(spec.relu ? 1 : 0),
        training_(options.mode == OperatorMode::kTraining),
        measures_(spec.measures(training_)),
        input_gradient_(options.wants_gradient(0)),
        addend_gradient_(options.wants_gradient(1)),
        shape_(spec.input.shape()),
        arrangement_(arrangement_of(spec.input)),
        has_addend_(spec.addend.has_value()),
        is_alike_(has_addend_ && *spec.addend == spec.input),
        addend_arrangement_(has_addend_ ? arrangement_of(*spec.addend) : arrangement_) {
    ARBALEST_CHECK(!has_addend_ || (spec.relu && spec.addend->shape() == shape_));
    traits_.output = spec.input;
    if (has_addend_ && (!is_alike_ || (training_ && !addend_gradient_))) {
      traits_.scratch_bytes = aligned(spec.input.bytes());  // the addend, or its gradient, in the input's layout
    }
    traits_.parameters.assign(kBatchNormParameters, make_layout({of_.channels}, DType::kFloat32, Order::kCanonical));
    traits_.in_place_forward = !training_;
    if (!training_) return;
    if (measures_) numbers_of_channel(spec);
    traits_.in_place_backward = !has_addend_ || is_alike_;
    traits_.in_place_backward_input = has_addend_ ? 1 : 0;  // backward writes its gradient first
    traits_.backward_reads_inputs = true;
    traits_.backward_reads_first_input_only = traits_.backward_reads_output = has_addend_;
    traits_.saved_bytes = aligned(static_cast<std::size_t>(2 * of_.channels) * sizeof(float));
    addend_place_ = aligned(norm_partial_bytes(of_, sizeof(T)));
    traits_.scratch_bytes += addend_place_;
  }

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override {
    const auto* input = static_cast<const T*>(operands.inputs[0]);
    auto* output = static_cast<T*>(operands.output);
    auto* partials = static_cast<Moments*>(operands.scratch);
    const BatchStatistics batch = statistics_in(operands.saved);
    const MeasuredStatistics measured =
        measures_ ? MeasuredStatistics{batch, at(operands.parameter_gradients, 2), at(operands.parameter_gradients, 3)}
                  : MeasuredStatistics{};
    const NormTerms terms = terms_of(operands.parameters, batch);
    const void* addend = has_addend_ ? operands.inputs[1] : nullptr;
    void* copy = place_in(operands.scratch);
    as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
      if (measures_) measure(input, of_, epsilon_, measured, {partials, context.arrivals}, context.stream);
      const void* added = addend;
      if (has_addend_ && !is_alike_) {
        transpose(addend, addend_arrangement_, copy, arrangement_, shape_, context.stream);
        added = copy;
      }
      normalize(input, static_cast<const T*>(added), output, of_, terms, context.stream);
    });
  }

  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override {
    ARBALEST_CHECK(training_);
    const auto* input = static_cast<const T*>(operands.inputs[0]);
    const auto* output_gradient = static_cast<const T*>(operands.output_gradient);
    auto* input_gradient = input_gradient_ ? static_cast<T*>(operands.input_gradients[0]) : nullptr;
    auto* partials = static_cast<GradientSums*>(operands.scratch);
    const BatchStatistics batch = statistics_in(const_cast<void*>(operands.saved));  // backward only reads it
    const NormTerms terms = terms_of(operands.parameters, batch);
    const NormGradients gradients{at(operands.parameter_gradients, 0), at(operands.parameter_gradients, 1)};
    void* addend_gradient = addend_gradient_ && has_addend_ ? operands.input_gradients[1] : nullptr;
    NormAddition<T> addition;
    if (has_addend_) {
      void* place = is_alike_ && addend_gradient_ ? addend_gradient : place_in(operands.scratch);
      addition = {static_cast<const T*>(operands.output), static_cast<T*>(place)};
    }
    as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
      sum_gradients(input, output_gradient, addition, of_, terms, gradients, {partials, context.arrivals},
                    context.stream);
      if (addend_gradient != nullptr && addend_gradient != addition.gradient) {
        transpose(addition.gradient, arrangement_, addend_gradient, addend_arrangement_, shape_, context.stream);
      }
      if (input_gradient == nullptr) return;
      NormTerms behind_relu = terms;
      if (has_addend_) behind_relu.relu = 0;  // the addend's gradient already includes ReLU's derivative
      find_input_gradient(input, has_addend_ ? addition.gradient : output_gradient, input_gradient, of_, behind_relu,
                          gradients, !measures_, context.stream);
    });
  }

 private:
  BatchStatistics statistics_in(void* saved) const {
    auto* values = static_cast<float*>(saved);
    if (values == nullptr) return {};
    return {values, values + of_.channels};
  }

  // In scratch, the addend's copy follows the blocks' partial sums.
  void* place_in(void* scratch) const {
    return scratch == nullptr ? nullptr : static_cast<std::byte*>(scratch) + addend_place_;
  }

  static const float* at(std::span<const void* const> parameters, std::size_t index) {
    return static_cast<const float*>(parameters[index]);
  }
  static float* at(std::span<void* const> gradients, std::size_t index) {
    return static_cast<float*>(gradients[index]);
  }
  NormTerms terms_of(std::span<const void* const> parameters, const BatchStatistics& batch) const {
    if (measures_) return {at(parameters, 0), at(parameters, 1), batch.mean, batch.inverse, nullptr, epsilon_, relu_};
    return {at(parameters, 0), at(parameters, 1), at(parameters, 2), nullptr, at(parameters, 3), epsilon_, relu_};
  }

  const Geometry of_;
  const float epsilon_;
  const std::int32_t relu_;
  const bool training_;
  const bool measures_;  // whether forward measures the mini-batch, or uses the running statistics
  const bool input_gradient_;
  const bool addend_gradient_;
  const Shape shape_;
  const Arrangement arrangement_;
  const bool has_addend_;
  const bool is_alike_;  // the addend has the input's layout and type
  const Arrangement addend_arrangement_;
  std::size_t addend_place_ = 0;  // offset in scratch
};

}  // namespace

std::unique_ptr<Operator> make_operator(const BatchNormSpec& spec, const PrepareOptions& options) {
  if (is_bfloat16(spec.input)) return std::make_unique<BatchNorm<BFloat16>>(spec, options);
  return std::make_unique<BatchNorm<float>>(spec, options);
}

}  // namespace arbalest::engine::cuda
