// What follows the products of convolutions and dense layers, on rows of channels: the bias and perhaps an activation,
// in one pass. cuDNN's own bias gradient is very slow where channels come last.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/dtype.h"
#include "engine/ops/activation.h"

namespace arbalest::engine::cuda {

// A matrix of the output or its gradient; computed in float32, whatever its type.
struct Rows {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  DType dtype = DType::kFloat32;  // or kBFloat16
  std::int64_t pixels = 1;        // rows whose numbers of one channel lie side by side; 1: the channels of a row do
};

// values[r, c] = f(values[r, c] + bias[c]); `bias` null: none. Enqueues one kernel, or nothing if there is nothing to
// do.
void finish_output(void* values, const float* bias, std::optional<ActivationFunction> f, const Rows& of,
                   cudaStream_t stream);

// gradient[r, c] *= f'(r, c), with f' from the output of finish_output, then sums[c] = sum over r of gradient[r, c], as
// it is stored; `sums` null: none. The order of additions depends on the extents only. Enqueues at most two kernels.
//   output: only read if there is an activation    partials: device memory of column_sum_bytes(of)
void begin_gradient(void* gradient, const void* output, std::optional<ActivationFunction> f, float* sums,
                    const Rows& of, float* partials, cudaStream_t stream);
std::size_t column_sum_bytes(const Rows& of);

}  // namespace arbalest::engine::cuda
