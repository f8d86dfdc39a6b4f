// The step after the products of convolutions and dense layers, on rows of channels: it applies the bias and an
// optional activation in one pass. cuDNN's own bias gradient is very slow for channels-last tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/base/dtype.h"
#include "engine/cuda/runtime/team_stream.h"
#include "engine/ops/activation.h"

namespace arbalest::engine::cuda {

// A matrix of the output or its gradient. Arithmetic is in float32 for both types.
struct Rows {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  DType dtype = DType::kFloat32;  // or kBFloat16
  std::int64_t pixels = 1;        // consecutive rows with contiguous numbers of one channel, or 1: see cut_columns
};

// values[r, c] = f(values[r, c] + bias[c]); `bias` may be null. Enqueues one kernel, or none without bias and f.
void finish_output(void* values, const float* bias, std::optional<ActivationFunction> f, const Rows& of,
                   const TeamStream& stream);

// gradient[r, c] *= f'(r, c), with f' computed from the output of finish_output. Then sums[c] = sum over r of the
// stored gradient[r, c]; `sums` may be null. The order of additions depends on the extents only. At most two kernels.
//   output: only read if there is an activation    partials: device memory of column_sum_bytes(of)
void begin_gradient(void* gradient, const void* output, std::optional<ActivationFunction> f, float* sums,
                    const Rows& of, float* partials, const TeamStream& stream);
std::size_t column_sum_bytes(const Rows& of);

}  // namespace arbalest::engine::cuda
