// cuDNN's layer normalization is in its graph library only, so these kernels are our own. A row is one example; forward
// and the gradient of the input work on a row with one block.
#include "engine/ops/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/channel_sums.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/operators/batch_norm.h"
#include "engine/cuda/operators/operators.h"
#include "engine/cuda/runtime/stream.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::load;
using elementwise::store;

struct Rows {
  std::int64_t count;
  std::int64_t features;
  std::int64_t channels;  // whose numbers lie side by side; all features in canonical order
  std::int64_t pixels;

  // Position in a parameter, which is in canonical order, of the row's i-th number.
  __device__ std::int64_t feature(std::int64_t i) const {
    return pixels == 1 ? i : i % channels * pixels + i / channels;
  }
};

// x - m is (x - first) - distance.
struct Statistics {
  float distance;  // of the mean from the row's first number
  float inverse;   // 1 / sqrt(variance + epsilon)
};

// Null without parameters.
struct Affine {
  const float* scale;
  const float* shift;

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(Affine& of, Visitor&& visit) {
    visit(of.scale);
    visit(of.shift);
  }
};

// Below, `T` is the type of all tensors. Sums are float32.

// (x - m) / sqrt(v + epsilon)
__device__ float normalized(float x, float first, const Statistics& of) {
  return (x - first - of.distance) * of.inverse;
}

// `saved` is null at inference, when the output may be the input.
template <typename T>
__device__ void normalize_rows(const T* input, T* output, Rows rows, Affine affine, float epsilon, Statistics* saved) {
  for (std::int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) {
    const T* x = input + row * rows.features;
    T* y = output + row * rows.features;
    const float first = load(x[0]);
    const auto count = static_cast<float>(rows.features);
    float sum = 0.0F;
    for (std::int64_t i = threadIdx.x; i < rows.features; i += kThreads) sum += load(x[i]) - first;
    const float distance = block_sum(sum) / count;
    float squares = 0.0F;
    for (std::int64_t i = threadIdx.x; i < rows.features; i += kThreads) {
      const float difference = load(x[i]) - first - distance;
      squares += difference * difference;
    }
    const Statistics statistics{distance, 1.0F / std::sqrt(block_sum(squares) / count + epsilon)};
    for (std::int64_t i = threadIdx.x; i < rows.features; i += kThreads) {
      const float z = normalized(load(x[i]), first, statistics);
      const std::int64_t f = rows.feature(i);
      store(affine.scale == nullptr ? z : affine.scale[f] * z + affine.shift[f], y[i]);
    }
    if (saved != nullptr && threadIdx.x == 0) saved[row] = statistics;
  }
}

// `input_gradient` may be `output_gradient`.
template <typename T>
__device__ void differentiate_rows(const T* input, const T* output_gradient, T* input_gradient, Rows rows,
                                   const float* scale, const Statistics* saved) {
  for (std::int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) {
    const T* x = input + row * rows.features;
    const T* dy = output_gradient + row * rows.features;
    const float first = load(x[0]);
    const Statistics statistics = saved[row];
    const auto count = static_cast<float>(rows.features);
    const auto gradient = [&](std::int64_t i) {
      return scale == nullptr ? load(dy[i]) : load(dy[i]) * scale[rows.feature(i)];
    };
    float sum = 0.0F;
    float products = 0.0F;
    for (std::int64_t i = threadIdx.x; i < rows.features; i += kThreads) {
      const float g = gradient(i);
      sum += g;
      products += g * normalized(load(x[i]), first, statistics);
    }
    const float mean = block_sum(sum) / count;
    const float product = block_sum(products) / count;
    for (std::int64_t i = threadIdx.x; i < rows.features; i += kThreads) {
      const float z = normalized(load(x[i]), first, statistics);
      store((gradient(i) - mean - z * product) * statistics.inverse, input_gradient[row * rows.features + i]);
    }
  }
}

// Each column of a cut is a feature, in the order of memory.
template <typename T>
__device__ void sum_parameter_gradients(const T* input, const T* output_gradient, Rows rows, const Statistics* saved,
                                        ColumnCut cut, BlockSums<GradientSums> shared, NormGradients gradients) {
  const ColumnPlace at(cut);
  GradientSums sums[1] = {};
  if (at.channel < rows.features) {
    for (std::int64_t row = at.first_row(); row < rows.count; row += at.row_step(cut)) {
      const T* x = input + row * rows.features;
      const float arriving = load(output_gradient[row * rows.features + at.channel]);
      sums[0].product += arriving * normalized(load(x[at.channel]), load(x[0]), saved[row]);
      sums[0].gradient += arriving;
    }
  }
  if (!join_blocks(sums, at, cut, rows.features, shared)) return;
  const std::int64_t f = rows.feature(at.channel);
  gradients.scale[f] = sums[0].product;
  gradients.shift[f] = sums[0].gradient;
}

Rows rows_of(const Layout& input) {
  const Shape& shape = input.shape();
  const std::int64_t features = shape.elements_per_example();
  const bool channels_last = shape.rank() == 4 && order_of(input) == Order::kChannelsLast;
  const std::int64_t channels = channels_last ? shape[1] : features;
  return {shape[0], features, channels, features / channels};
}

template <typename T>
class LayerNorm final : public Operator {
 public:
  LayerNorm(const LayerNormSpec& spec, const PrepareOptions& options)
      : rows_(rows_of(spec.input)),
        cut_(cut_columns(rows_.count, rows_.features, 1)),
        blocks_(std::clamp<std::int64_t>(rows_.count, 1, kMaxBlocks)),
        epsilon_(spec.epsilon),
        affine_(spec.affine),
        training_(options.mode == OperatorMode::kTraining),
        input_gradient_(options.wants_gradient(0)) {
    traits_.output = spec.input;
    const Shape example = example_shape(spec.input.shape());
    if (affine_) traits_.parameters.assign(2, make_layout(example, DType::kFloat32, Order::kCanonical));
    traits_.in_place_forward = !training_;
    if (!training_) return;
    traits_.backward_reads_inputs = true;
    traits_.in_place_backward = true;
    traits_.saved_bytes = aligned(static_cast<std::size_t>(rows_.count) * sizeof(Statistics));
    if (affine_ && cut_.slices > 1) {
      traits_.scratch_bytes = aligned(static_cast<std::size_t>(cut_.slices * rows_.features) * sizeof(GradientSums));
    }
  }

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override {
    const auto* input = static_cast<const T*>(operands.inputs[0]);
    auto* output = static_cast<T*>(operands.output);
    const Affine affine{parameter(operands.parameters, 0), parameter(operands.parameters, 1)};
    auto* saved = training_ ? static_cast<Statistics*>(operands.saved) : nullptr;
    as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
      launch<normalize_rows<T>>(blocks_, context.stream, input, output, rows_, affine, epsilon_, saved);
    });
  }

  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override {
    ARBALEST_CHECK(training_);
    if (!affine_ && !input_gradient_) return;
    const auto* input = static_cast<const T*>(operands.inputs[0]);
    const auto* output_gradient = static_cast<const T*>(operands.output_gradient);
    auto* input_gradient = input_gradient_ ? static_cast<T*>(operands.input_gradients[0]) : nullptr;
    const float* scale = parameter(operands.parameters, 0);
    const NormGradients gradients = affine_ ? NormGradients{static_cast<float*>(operands.parameter_gradients[0]),
                                                            static_cast<float*>(operands.parameter_gradients[1])}
                                            : NormGradients{};
    const auto* saved = static_cast<const Statistics*>(operands.saved);
    auto* partials = static_cast<GradientSums*>(operands.scratch);
    as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
      if (affine_) {  // first, because the gradient of the input may be written over that of the output
        launch<sum_parameter_gradients<T>>(cut_.blocks(), context.stream, input, output_gradient, rows_, saved, cut_,
                                           BlockSums<GradientSums>{partials, context.arrivals}, gradients);
      }
      if (input_gradient == nullptr) return;
      launch<differentiate_rows<T>>(blocks_, context.stream, input, output_gradient, input_gradient, rows_, scale,
                                    saved);
    });
  }

 private:
  const float* parameter(std::span<const void* const> parameters, std::size_t index) const {
    return affine_ ? static_cast<const float*>(parameters[index]) : nullptr;
  }

  const Rows rows_;
  const ColumnCut cut_;
  const std::int64_t blocks_;
  const float epsilon_;
  const bool affine_;
  const bool training_;
  const bool input_gradient_;
};

}  // namespace

std::unique_ptr<Operator> make_operator(const LayerNormSpec& spec, const PrepareOptions& options) {
  const int rank = spec.input.shape().rank();
  ARBALEST_CHECK((rank == 2 || rank == 4) && spec.epsilon > 0.0F);
  if (is_bfloat16(spec.input)) return std::make_unique<LayerNorm<BFloat16>>(spec, options);
  return std::make_unique<LayerNorm<float>>(spec, options);
}

}  // namespace arbalest::engine::cuda
