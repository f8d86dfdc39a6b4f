#include "engine/cuda/operators/bias.h"

#include <algorithm>
#include <type_traits>

#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/channel_rows.h"
#include "engine/cuda/kernels/columns.h"
#include "engine/cuda/operators/activation.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::load;
using elementwise::store;

ColumnCut cut_for(const Rows& of) { return cut_columns(of.rows, of.channels, of.pixels); }
Geometry geometry_of(const Rows& of) { return {of.rows, of.channels, of.pixels}; }

// Takes the activation's place if there is none.
struct Identity {
  __device__ float output(float x) const { return x; }
};

template <typename Body>
void with_function_or_none(const std::optional<ActivationFunction>& f, const Body& body) {
  if (!f.has_value()) {
    body(Identity{});
  } else {
    with_function(*f, body);
  }
}

// Calls body with an element of type `dtype`.
template <typename Body>
void with_element(DType dtype, const Body& body) {
  if (dtype == DType::kBFloat16) {
    body(BFloat16{});
  } else {
    body(float{});
  }
}

// Below, `T` is the type of output and gradient.
template <typename Function, typename T>
__device__ void finish(Function f, T* values, const float* bias, const Geometry of) {
  for_elements(of, [&](std::int64_t i, std::int64_t channel) {
    const float value = load(values[i]);
    store(f.output(bias == nullptr ? value : value + bias[channel]), values[i]);
  });
}

// Replaces the gradient by the gradient before the activation, and returns it. Without an activation, reads no `output`
// and writes nothing.
template <typename Function, typename T>
__device__ float gradient_at(const Function& f, T* gradient, const T* output, std::int64_t i) {
  if constexpr (!std::is_same_v<Function, Identity>) {
    store(f.gradient(load(output[i]), load(gradient[i])), gradient[i]);
  }
  return load(gradient[i]);
}

template <typename Function, typename T>
__device__ void differentiate(Function f, T* gradient, const T* output, std::int64_t elements) {
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    gradient_at(f, gradient, output, i);
  }
}

// sums[slice, c] = sum over the slice's rows of gradient_at(r, c).
template <typename Function, typename T>
__device__ void sum_slices(Function f, T* gradient, const T* output, float* sums, const Geometry of,
                           const ColumnCut cut) {
  __shared__ float of_thread[kThreads];
  const ColumnPlace at(cut);
  float sum = 0.0F;
  if (at.channel < of.channels) {
    RowWalk walk(of, at.channel, at.first_row(), at.row_step(cut));
    for (std::int64_t r = at.first_row(); r < of.rows; r += at.row_step(cut), walk.advance()) {
      sum += gradient_at(f, gradient, output, walk.element);
    }
  }
  of_thread[at.thread] = sum;
  for (std::int64_t half = at.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (at.lane < half) of_thread[at.thread] += of_thread[at.thread + half * cut.tile];
  }
  if (at.lane == 0 && at.channel < of.channels) sums[at.slice * of.channels + at.channel] = of_thread[at.thread];
}

template <typename T>
void begin_gradient_of(T* gradient, const T* output, std::optional<ActivationFunction> f, float* sums, const Rows& of,
                       float* partials, const TeamStream& stream) {
  if (sums == nullptr) {
    if (!f.has_value()) return;
    const std::int64_t elements = of.rows * of.channels;
    with_function(*f, [&](auto function) {
      launch<differentiate<decltype(function), T>>(blocks_for(elements), stream, function, gradient, output, elements);
    });
    return;
  }
  const ColumnCut cut = cut_for(of);
  with_function_or_none(f, [&](auto function) {
    launch<sum_slices<decltype(function), T>>(cut.blocks(), stream, function, gradient, output,
                                              cut.slices == 1 ? sums : partials, geometry_of(of), cut);
  });
  if (cut.slices == 1) return;
  const ColumnCut whole = cut.whole();
  launch<sum_slices<Identity, float>>(whole.blocks(), stream, Identity{}, partials, static_cast<const float*>(nullptr),
                                      sums, Geometry{cut.slices, of.channels, 1}, whole);
}

}  // namespace

void finish_output(void* values, const float* bias, std::optional<ActivationFunction> f, const Rows& of,
                   const TeamStream& stream) {
  if (bias == nullptr && !f.has_value()) return;
  const std::int64_t elements = of.rows * of.channels;
  with_element(of.dtype, [&](auto element) {
    using T = decltype(element);
    with_function_or_none(f, [&](auto function) {
      launch<finish<decltype(function), T>>(blocks_for(elements), stream, function, static_cast<T*>(values), bias,
                                            geometry_of(of));
    });
  });
}

void begin_gradient(void* gradient, const void* output, std::optional<ActivationFunction> f, float* sums,
                    const Rows& of, float* partials, const TeamStream& stream) {
  with_element(of.dtype, [&](auto element) {
    using T = decltype(element);
    begin_gradient_of(static_cast<T*>(gradient), static_cast<const T*>(output), f, sums, of, partials, stream);
  });
}

std::size_t column_sum_bytes(const Rows& of) {
  const ColumnCut cut = cut_for(of);
  return cut.slices == 1 ? 0 : static_cast<std::size_t>(cut.slices * of.channels) * sizeof(float);
}

}  // namespace arbalest::engine::cuda
