// cuDNN has no parametric ReLU, so these kernels are our own: one for forward, and one for both gradients.
#include "engine/ops/prelu.h"

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/kernels/channel_groups.h"
#include "engine/cuda/kernels/channel_sums.h"
#include "engine/cuda/operators/operators.h"
#include "engine/cuda/runtime/stream.h"
#include "engine/elementwise/prelu.h"

namespace arbalest::engine::cuda {

namespace {

constexpr std::int64_t kGroupsOfThread = 8;  // groups that a thread adds up

template <typename G>
ColumnCut cut_of(const Geometry& of) {
  return cut_columns(of.rows, of.channels, of.pixels, kGroupsOfThread);
}

struct SlopeSum {
  float sum;  // of dy x where x is not above 0

  __device__ SlopeSum joined(const SlopeSum& other) const { return {sum + other.sum}; }
  static __device__ SlopeSum read(const volatile SlopeSum* from) { return {from->sum}; }
};

// `output` may be `input`.
template <typename G>
__device__ void apply_slopes(const typename G::Element* input, typename G::Element* output, const Geometry of,
                             const float* slopes) {
  for_elements(of, [&](std::int64_t i, std::int64_t column) {
    const Floats<G::kChannels> slope = load_group<G::kChannels>(slopes, column);
    Floats<G::kNumbers> values = load_group<G::kNumbers>(input, i);
    for (int k = 0; k < G::kNumbers; ++k) {
      values.at[k] = elementwise::prelu(values.at[k], slope.at[G::channel_of(k)]);
    }
    store_group(values, output, i);
  });
}

// `input_gradient` may be `output_gradient`, or null if it is not wanted.
template <typename G>
__device__ void differentiate_channels(const typename G::Element* input, const typename G::Element* output_gradient,
                                       typename G::Element* input_gradient, const Geometry of, const ColumnCut cut,
                                       const float* slopes, float* slope_gradients, const BlockSums<SlopeSum> shared) {
  const ColumnPlace at(cut);
  SlopeSum sums[G::kChannels] = {};
  if (at.channel < of.channels && at.first_row() < of.rows) {
    const Floats<G::kChannels> slope = load_group<G::kChannels>(slopes, at.channel);
    RowWalk walk(of, at.channel, at.first_row(), at.row_step(cut));
    for (std::int64_t r = at.first_row(); r < of.rows; r += at.row_step(cut), walk.advance()) {
      const Floats<G::kNumbers> x = load_group<G::kNumbers>(input, walk.element);
      Floats<G::kNumbers> gradient = load_group<G::kNumbers>(output_gradient, walk.element);
      for (int k = 0; k < G::kNumbers; ++k) {
        const int c = G::channel_of(k);
        sums[c].sum += elementwise::prelu_slope_term(x.at[k], gradient.at[k]);
        gradient.at[k] = elementwise::prelu_gradient(x.at[k], slope.at[c], gradient.at[k]);
      }
      if (input_gradient != nullptr) store_group(gradient, input_gradient, walk.element);
    }
  }
  if (!join_blocks(sums, at, cut, of.channels, shared)) return;
  for (int c = 0; c < G::kChannels; ++c) slope_gradients[at.channel * G::kChannels + c] = sums[c].sum;
}

template <typename T>
class PRelu final : public Operator {
 public:
  PRelu(const PReluSpec& spec, const PrepareOptions& options)
      : of_(geometry_of(spec.input)),
        training_(options.mode == OperatorMode::kTraining),
        input_gradient_(options.wants_gradient(0)) {
    traits_.output = spec.input;
    traits_.parameters = {make_layout({of_.channels}, DType::kFloat32, Order::kCanonical)};
    traits_.in_place_forward = !training_;
    if (!training_) return;
    traits_.backward_reads_inputs = true;
    traits_.in_place_backward = true;
    with_groups<T>(of_, [&]<typename G>(G, const Geometry& groups) {
      const std::int64_t slices = cut_of<G>(groups).slices;
      if (slices == 1) return;
      traits_.scratch_bytes = aligned(static_cast<std::size_t>(slices * of_.channels) * sizeof(SlopeSum));
    });
  }

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override {
    const auto* input = static_cast<const T*>(operands.inputs[0]);
    auto* output = static_cast<T*>(operands.output);
    const auto* slopes = static_cast<const float*>(operands.parameters[0]);
    as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
      with_groups<T>(of_, [&]<typename G>(G, const Geometry& groups) {
        launch<apply_slopes<G>>(blocks_for(groups.rows * groups.channels), context.stream, input, output, groups,
                                slopes);
      });
    });
  }

  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override {
    ARBALEST_CHECK(training_);
    const auto* input = static_cast<const T*>(operands.inputs[0]);
    const auto* output_gradient = static_cast<const T*>(operands.output_gradient);
    auto* input_gradient = input_gradient_ ? static_cast<T*>(operands.input_gradients[0]) : nullptr;
    const auto* slopes = static_cast<const float*>(operands.parameters[0]);
    auto* slope_gradients = static_cast<float*>(operands.parameter_gradients[0]);
    auto* partials = static_cast<SlopeSum*>(operands.scratch);
    as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
      with_groups<T>(of_, [&]<typename G>(G, const Geometry& groups) {
        const ColumnCut cut = cut_of<G>(groups);
        launch<differentiate_channels<G>>(cut.blocks(), context.stream, input, output_gradient, input_gradient, groups,
                                          cut, slopes, slope_gradients,
                                          BlockSums<SlopeSum>{partials, context.arrivals});
      });
    });
  }

 private:
  const Geometry of_;
  const bool training_;
  const bool input_gradient_;
};

}  // namespace

std::unique_ptr<Operator> make_operator(const PReluSpec& spec, const PrepareOptions& options) {
  const int rank = spec.input.shape().rank();
  ARBALEST_CHECK(rank == 2 || rank == 4);
  if (is_bfloat16(spec.input)) return std::make_unique<PRelu<BFloat16>>(spec, options);
  return std::make_unique<PRelu<float>>(spec, options);
}

}  // namespace arbalest::engine::cuda
