// cuDNN's kernels support only sizes up to 16 and k above 1e-5 in canonical order, so these kernels are our own.
#include <algorithm>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/operators/kernel_operator.h"
#include "engine/cuda/operators/operators.h"
#include "engine/elementwise/bfloat16.h"
#include "engine/elementwise/local_response.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::load;
using elementwise::LocalResponse;
using elementwise::store;

struct Geometry {
  std::int64_t elements;
  std::int64_t channels;
  std::int64_t step;  // distance to the same pixel of the next channel
};

// The neighbors of element i, including itself: [begin, end) in steps of geometry.step.
struct Neighbors {
  std::int64_t begin;
  std::int64_t end;
};

__device__ Neighbors neighbors_of(std::int64_t i, const Geometry& geometry, const LocalResponse& response) {
  const std::int64_t channel = i / geometry.step % geometry.channels;
  const std::int64_t before = std::min<std::int64_t>(channel, response.reach);
  const std::int64_t after = std::min<std::int64_t>(geometry.channels - 1 - channel, response.reach);
  return {i - before * geometry.step, i + (after + 1) * geometry.step};
}

// Below, `T` is the type of all tensors.

template <typename T>
__device__ float scale_at(const T* input, const Neighbors& neighbors, const Geometry& geometry,
                          const LocalResponse& response) {
  float squares = 0.0F;
  for (std::int64_t j = neighbors.begin; j < neighbors.end; j += geometry.step) {
    const float x = load(input[j]);
    squares += x * x;
  }
  return elementwise::response_scale(response, squares);
}

template <typename T>
__device__ void normalize(const T* input, T* output, Geometry geometry, LocalResponse response) {
  for (std::int64_t i = first_element(); i < geometry.elements; i += element_step()) {
    const float scale = scale_at(input, neighbors_of(i, geometry, response), geometry, response);
    store(load(input[i]) * elementwise::response_factor(response, scale), output[i]);
  }
}

// ratios = dy x s^(-beta - 1)
template <typename T>
__device__ void compute_ratios(const T* input, const T* output_gradient, float* ratios, Geometry geometry,
                               LocalResponse response) {
  for (std::int64_t i = first_element(); i < geometry.elements; i += element_step()) {
    const float scale = scale_at(input, neighbors_of(i, geometry, response), geometry, response);
    const float factor = elementwise::response_factor(response, scale);
    ratios[i] = load(output_gradient[i]) * load(input[i]) * factor / scale;
  }
}

template <typename T>
__device__ void differentiate(const T* input, const T* output_gradient, const float* ratios, T* input_gradient,
                              Geometry geometry, LocalResponse response) {
  for (std::int64_t i = first_element(); i < geometry.elements; i += element_step()) {
    const Neighbors neighbors = neighbors_of(i, geometry, response);
    float sum = 0.0F;
    for (std::int64_t j = neighbors.begin; j < neighbors.end; j += geometry.step) sum += ratios[j];
    const float factor = elementwise::response_factor(response, scale_at(input, neighbors, geometry, response));
    store(elementwise::response_gradient(response, load(input[i]), load(output_gradient[i]), factor, sum),
          input_gradient[i]);
  }
}

template <typename T>
std::unique_ptr<Operator> make_norm(const LocalResponseNormSpec& spec, const PrepareOptions& options) {
  const Shape& shape = spec.input.shape();
  const bool channels_last = order_of(spec.input) == Order::kChannelsLast;
  const Geometry geometry{shape.elements(), shape[1], channels_last ? 1 : shape[2] * shape[3]};
  const LocalResponse response{static_cast<std::int32_t>(spec.size / 2), spec.alpha / static_cast<float>(spec.size),
                               spec.beta, spec.k};
  const std::int64_t blocks = blocks_for(geometry.elements);

  OperatorTraits traits;
  traits.output = spec.input;
  const auto forward = [=](const ForwardAddresses& addresses, const StreamContext& context) {
    launch<normalize<T>>(blocks, context.stream, static_cast<const T*>(addresses.input),
                         static_cast<T*>(addresses.output), geometry, response);
  };
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<KernelOperator>(std::move(traits), forward, nullptr);
  }

  traits.backward_reads_inputs = true;
  traits.in_place_backward = true;
  KernelOperator::Backward backward;
  if (options.input_gradient) {
    traits.scratch_bytes = aligned(static_cast<std::size_t>(geometry.elements) * sizeof(float));  // ratios
    backward = [=](const BackwardAddresses& addresses, const StreamContext& context) {
      const auto* input = static_cast<const T*>(addresses.input);
      const auto* output_gradient = static_cast<const T*>(addresses.output_gradient);
      auto* ratios = static_cast<float*>(addresses.scratch);
      launch<compute_ratios<T>>(blocks, context.stream, input, output_gradient, ratios, geometry, response);
      launch<differentiate<T>>(blocks, context.stream, input, output_gradient, static_cast<const float*>(ratios),
                               static_cast<T*>(addresses.input_gradient), geometry, response);
    };
  }
  return std::make_unique<KernelOperator>(std::move(traits), forward, std::move(backward));
}

}  // namespace

std::unique_ptr<Operator> make_operator(const LocalResponseNormSpec& spec, const PrepareOptions& options) {
  ARBALEST_CHECK(spec.input.shape().rank() == 4 && spec.size % 2 == 1 && spec.k > 0.0F);
  return is_bfloat16(spec.input) ? make_norm<BFloat16>(spec, options) : make_norm<float>(spec, options);
}

}  // namespace arbalest::engine::cuda
