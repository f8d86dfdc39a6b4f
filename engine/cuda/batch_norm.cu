#include "engine/ops/batch_norm.h"

#include <cmath>
#include <optional>

#include "engine/alignment.h"
#include "engine/cuda/channel_rows.h"
#include "engine/cuda/columns.h"
#include "engine/cuda/operators.h"
#include "engine/cuda/stream.h"
#include "engine/cuda/transpose.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::load;
using elementwise::store;

// Of some numbers of a channel. Joined as Chan, Golub and LeVeque (1979) do it, so that a mean far from zero costs no
// precision of the variance.
struct Moments {
  float count;
  float mean;
  float squares;  // sum of (x - mean)^2

  __device__ Moments joined(const Moments& other) const {
    if (other.count == 0.0F) return *this;
    const float total = count + other.count;
    const float distance = other.mean - mean;
    const float share = other.count / total;
    return {total, mean + distance * share, squares + other.squares + distance * distance * (count * share)};
  }
};

// What backward wants to know of a batch; [channels] each.
struct BatchStatistics {
  float* mean;
  float* inverse;  // 1 / sqrt(variance + epsilon), of the biased variance
};

// What forward measures, the last two for the running statistics; [channels] each.
struct Measured {
  BatchStatistics batch;
  float* mean;
  float* unbiased;  // variance
};

// Gradients of scale and shift, before they are called so.
struct GradientSums {
  float product;  // sum of dy times the normalized x
  float gradient;

  __device__ GradientSums joined(const GradientSums& other) const {
    return {product + other.product, gradient + other.gradient};
  }
};

// `of_thread` of all lanes of the channel, joined in one order; in the first lane. All threads of the block call it.
template <typename T>
__device__ T join_lanes(const T& of_thread, const ColumnPlace& at, const ColumnCut& cut) {
  __shared__ T all[kThreads];
  all[at.thread] = of_thread;
  for (std::int64_t half = at.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (at.lane < half) all[at.thread] = all[at.thread].joined(all[at.thread + half * cut.tile]);
  }
  return all[at.thread];
}

__device__ void store_statistics(const Measured& target, std::int64_t channel, const Moments& of, float epsilon) {
  target.batch.mean[channel] = of.mean;
  target.batch.inverse[channel] = 1.0F / std::sqrt(of.squares / of.count + epsilon);
  target.mean[channel] = of.mean;
  target.unbiased[channel] = of.squares / (of.count - 1.0F);
}

// Of the slices' rows: to `partials` [slices, channels], or to `target` if there is one slice.
template <typename T>
__global__ void measure(const T* input, const Geometry of, const ColumnCut cut, float epsilon, const Measured target,
                        Moments* partials) {
  const ColumnPlace at(cut);
  Moments moments{0.0F, 0.0F, 0.0F};
  if (at.channel < of.channels && at.first_row() < of.rows) {
    RowWalk walk(of, at.channel, at.first_row(), at.row_step(cut));
    const float origin = load(input[walk.element]);  // not far from the mean
    float sum = 0.0F;
    float squares = 0.0F;
    for (std::int64_t r = at.first_row(); r < of.rows; r += at.row_step(cut), walk.advance()) {
      const float distance = load(input[walk.element]) - origin;
      sum += distance;
      squares += distance * distance;
      moments.count += 1.0F;
    }
    const float mean = sum / moments.count;
    moments.mean = origin + mean;
    moments.squares = squares - sum * mean;
  }
  const Moments total = join_lanes(moments, at, cut);
  if (at.lane != 0 || at.channel >= of.channels) return;
  if (cut.slices == 1) {
    store_statistics(target, at.channel, total, epsilon);
  } else {
    partials[at.slice * of.channels + at.channel] = total;
  }
}

// The column of `partials` [slices, channels], joined; in the first lane of the channel. `zero` joins without a trace.
template <typename T>
__device__ T join_slices(const T* partials, std::int64_t slices, std::int64_t channels, const T& zero,
                         const ColumnPlace& at, const ColumnCut& whole) {
  T of_thread = zero;
  if (at.channel < channels) {
    for (std::int64_t s = at.lane; s < slices; s += at.lanes) {
      of_thread = of_thread.joined(partials[s * channels + at.channel]);
    }
  }
  return join_lanes(of_thread, at, whole);
}

__global__ void finish_statistics(const Moments* partials, std::int64_t slices, std::int64_t channels,
                                  const ColumnCut whole, float epsilon, const Measured target) {
  const ColumnPlace at(whole);
  const Moments total = join_slices(partials, slices, channels, Moments{0.0F, 0.0F, 0.0F}, at, whole);
  if (at.lane == 0 && at.channel < channels) store_statistics(target, at.channel, total, epsilon);
}

// The parameters, and the statistics that are in force. Either `inverse` or, at inference, `variance`.
struct Terms {
  const float* scale;
  const float* shift;
  const float* mean;
  const float* inverse;
  const float* variance;
  float epsilon;
  std::int32_t relu;  // 1 or 0

  __device__ float normalized(float x, std::int64_t channel) const {
    const float factor = inverse != nullptr ? inverse[channel] : 1.0F / std::sqrt(variance[channel] + epsilon);
    return (x - mean[channel]) * factor;
  }
  // Before ReLU. Forward and backward compute the same bits, so they agree on what ReLU lets pass.
  __device__ float output(float normalized, std::int64_t channel) const {
    return normalized * scale[channel] + shift[channel];
  }
  // dy on the near side of ReLU, where nothing is added before that.
  __device__ float gradient(float normalized, float dy, std::int64_t channel) const {
    return relu != 0 && !(output(normalized, channel) > 0.0F) ? 0.0F : dy;
  }
};

// `addend` null: none.
template <typename T>
__global__ void normalize(const T* input, const T* addend, T* output, const Geometry of, const Terms terms) {
  for_elements(of, [&](std::int64_t i, std::int64_t channel) {
    float y = terms.output(terms.normalized(load(input[i]), channel), channel);
    if (addend != nullptr) y += load(addend[i]);
    store(terms.relu != 0 && y < 0.0F ? 0.0F : y, output[i]);  // NaN stays NaN
  });
}

// [channels] each: what backward writes.
struct ParameterGradients {
  float* scale;
  float* shift;
};

__device__ void store_gradients(const ParameterGradients& target, std::int64_t channel, const GradientSums& sums) {
  target.scale[channel] = sums.product;
  target.shift[channel] = sums.gradient;
}

// With an addend: the output, which says what ReLU let pass, and where the gradient behind that goes, perhaps in the
// place of the output's. Null: there is none.
template <typename T>
struct Addition {
  const T* output = nullptr;
  T* gradient = nullptr;
};

// Of the slices' rows: to `partials` [slices, channels], or to `gradients` if there is one slice.
template <typename T>
__global__ void sum_gradients(const T* input, const T* output_gradient, const Addition<T> addition, const Geometry of,
                              const ColumnCut cut, const Terms terms, const ParameterGradients gradients,
                              GradientSums* partials) {
  const ColumnPlace at(cut);
  GradientSums sums{0.0F, 0.0F};
  if (at.channel < of.channels) {
    RowWalk walk(of, at.channel, at.first_row(), at.row_step(cut));
    for (std::int64_t r = at.first_row(); r < of.rows; r += at.row_step(cut), walk.advance()) {
      const std::int64_t i = walk.element;
      const float normalized = terms.normalized(load(input[i]), at.channel);
      const float arriving = load(output_gradient[i]);
      float gradient;
      if (addition.gradient == nullptr) {
        gradient = terms.gradient(normalized, arriving, at.channel);
      } else {
        gradient = load(addition.output[i]) > 0.0F ? arriving : 0.0F;
        store(gradient, addition.gradient[i]);
      }
      sums.product += gradient * normalized;
      sums.gradient += gradient;
    }
  }
  const GradientSums total = join_lanes(sums, at, cut);
  if (at.lane != 0 || at.channel >= of.channels) return;
  if (cut.slices == 1) {
    store_gradients(gradients, at.channel, total);
  } else {
    partials[at.slice * of.channels + at.channel] = total;
  }
}

__global__ void finish_gradients(const GradientSums* partials, std::int64_t slices, std::int64_t channels,
                                 const ColumnCut whole, const ParameterGradients gradients) {
  const ColumnPlace at(whole);
  const GradientSums total = join_slices(partials, slices, channels, GradientSums{0.0F, 0.0F}, at, whole);
  if (at.lane == 0 && at.channel < channels) store_gradients(gradients, at.channel, total);
}

// dx = scale / sqrt(v + epsilon) (dy - mean of dy - n mean of (dy n)), n the normalized x. The gradients may be one.
template <typename T>
__global__ void find_input_gradient(const T* input, const T* output_gradient, T* input_gradient, const Geometry of,
                                    const Terms terms, const ParameterGradients sums) {
  const float share = 1.0F / static_cast<float>(of.rows);
  for_elements(of, [&](std::int64_t i, std::int64_t channel) {
    const float normalized = terms.normalized(load(input[i]), channel);
    const float gradient = terms.gradient(normalized, load(output_gradient[i]), channel);
    const float centered = gradient - (sums.shift[channel] + normalized * sums.scale[channel]) * share;
    store(terms.scale[channel] * terms.inverse[channel] * centered, input_gradient[i]);
  });
}

template <typename T>
class BatchNorm final : public Operator {
 public:
  BatchNorm(const BatchNormSpec& spec, const PrepareOptions& options)
      : of_(geometry_of(spec.input)),
        cut_(cut_columns(of_.rows, of_.channels, of_.pixels)),
        epsilon_(spec.epsilon),
        relu_(spec.relu ? 1 : 0),
        training_(options.mode == OperatorMode::kTraining),
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
      traits_.scratch_bytes = aligned(spec.input.bytes());  // for it, or its gradient, as the input lies
    }
    traits_.parameters.assign(kBatchNormParameters, make_layout({of_.channels}, DType::kFloat32, Order::kCanonical));
    traits_.in_place_forward = !training_;
    if (!training_) return;
    numbers_of_channel(spec);
    traits_.in_place_backward = !has_addend_ || is_alike_;
    traits_.in_place_backward_input = has_addend_ ? 1 : 0;  // which is written first
    traits_.backward_reads_inputs = true;
    traits_.backward_reads_first_input_only = traits_.backward_reads_output = has_addend_;
    traits_.saved_bytes = aligned(static_cast<std::size_t>(2 * of_.channels) * sizeof(float));
    if (cut_.slices > 1) {
      addend_place_ = aligned(static_cast<std::size_t>(cut_.slices * of_.channels) * sizeof(Moments));
      traits_.scratch_bytes += addend_place_;
    }
  }

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override {
    const auto* input = static_cast<const T*>(operands.inputs[0]);
    auto* output = static_cast<T*>(operands.output);
    auto* partials = static_cast<Moments*>(operands.scratch);
    const BatchStatistics batch = statistics_in(operands.saved);
    const Measured measured =
        training_ ? Measured{batch, at(operands.parameter_gradients, 2), at(operands.parameter_gradients, 3)}
                  : Measured{};
    const Terms terms = training_ ? terms_of(operands.parameters, batch) : running_terms(operands.parameters);
    const void* addend = has_addend_ ? operands.inputs[1] : nullptr;
    void* copy = place_in(operands.scratch);
    as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
      if (training_) {
        launch(measure<T>, cut_.blocks(), context.stream, input, of_, cut_, epsilon_, measured, partials);
        if (cut_.slices > 1) {
          launch(finish_statistics, cut_.whole().blocks(), context.stream, partials, cut_.slices, of_.channels,
                 cut_.whole(), epsilon_, measured);
        }
      }
      const void* added = addend;
      if (has_addend_ && !is_alike_) {
        transpose(addend, addend_arrangement_, copy, arrangement_, shape_, context.stream);
        added = copy;
      }
      launch(normalize<T>, blocks_for(of_.rows * of_.channels), context.stream, input, static_cast<const T*>(added),
             output, of_, terms);
    });
  }

  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override {
    ARBALEST_CHECK(training_);
    const auto* input = static_cast<const T*>(operands.inputs[0]);
    const auto* output_gradient = static_cast<const T*>(operands.output_gradient);
    auto* input_gradient = input_gradient_ ? static_cast<T*>(operands.input_gradients[0]) : nullptr;
    auto* partials = static_cast<GradientSums*>(operands.scratch);
    const BatchStatistics batch = statistics_in(const_cast<void*>(operands.saved));  // only read
    const Terms terms = terms_of(operands.parameters, batch);
    const ParameterGradients gradients{at(operands.parameter_gradients, 0), at(operands.parameter_gradients, 1)};
    void* addend_gradient = addend_gradient_ && has_addend_ ? operands.input_gradients[1] : nullptr;
    Addition<T> addition;
    if (has_addend_) {
      void* place = is_alike_ && addend_gradient_ ? addend_gradient : place_in(operands.scratch);
      addition = {static_cast<const T*>(operands.output), static_cast<T*>(place)};
    }
    as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
      launch(sum_gradients<T>, cut_.blocks(), context.stream, input, output_gradient, addition, of_, cut_, terms,
             gradients, partials);
      if (addend_gradient != nullptr && addend_gradient != addition.gradient) {
        transpose(addition.gradient, arrangement_, addend_gradient, addend_arrangement_, shape_, context.stream);
      }
      if (cut_.slices > 1) {
        launch(finish_gradients, cut_.whole().blocks(), context.stream, partials, cut_.slices, of_.channels,
               cut_.whole(), gradients);
      }
      if (input_gradient == nullptr) return;
      Terms behind_relu = terms;
      if (has_addend_) behind_relu.relu = 0;  // what it took away is gone from the addend's gradient
      launch(find_input_gradient<T>, blocks_for(of_.rows * of_.channels), context.stream, input,
             has_addend_ ? addition.gradient : output_gradient, input_gradient, of_, behind_relu, gradients);
    });
  }

 private:
  BatchStatistics statistics_in(void* saved) const {
    auto* values = static_cast<float*>(saved);
    if (values == nullptr) return {};
    return {values, values + of_.channels};
  }

  // Behind the slices' sums.
  void* place_in(void* scratch) const {
    return scratch == nullptr ? nullptr : static_cast<std::byte*>(scratch) + addend_place_;
  }

  static const float* at(std::span<const void* const> parameters, std::size_t index) {
    return static_cast<const float*>(parameters[index]);
  }
  static float* at(std::span<void* const> gradients, std::size_t index) {
    return static_cast<float*>(gradients[index]);
  }
  Terms terms_of(std::span<const void* const> parameters, const BatchStatistics& batch) const {
    return {at(parameters, 0), at(parameters, 1), batch.mean, batch.inverse, nullptr, epsilon_, relu_};
  }
  Terms running_terms(std::span<const void* const> parameters) const {
    return {at(parameters, 0), at(parameters, 1), at(parameters, 2), nullptr, at(parameters, 3), epsilon_, relu_};
  }

  const Geometry of_;
  const ColumnCut cut_;
  const float epsilon_;
  const std::int32_t relu_;
  const bool training_;
  const bool input_gradient_;
  const bool addend_gradient_;
  const Shape shape_;
  const Arrangement arrangement_;
  const bool has_addend_;
  const bool is_alike_;  // the addend lies and is stored as the input
  const Arrangement addend_arrangement_;
  std::size_t addend_place_ = 0;  // in scratch
};

}  // namespace

std::unique_ptr<Operator> make_operator(const BatchNormSpec& spec, const PrepareOptions& options) {
  if (is_bfloat16(spec.input)) return std::make_unique<BatchNorm<BFloat16>>(spec, options);
  return std::make_unique<BatchNorm<float>>(spec, options);
}

}  // namespace arbalest::engine::cuda
