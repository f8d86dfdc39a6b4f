// The bias of convolutions and dense layers, on rows of channels: [rows, channels], channels last. cuDNN's own bias
// gradient is very slow on such tensors.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace arbalest::engine::cuda {

// values[r, c] += bias[c]. Enqueues one kernel.
void add_bias(float* values, const float* bias, std::int64_t rows, std::int64_t channels, cudaStream_t stream);

// sums[c] = sum over r of values[r, c]. The order of additions depends on the extents only. Enqueues one or two
// kernels.
//   partials: device memory of column_sum_bytes(rows, channels)
void column_sum(const float* values, float* sums, std::int64_t rows, std::int64_t channels, float* partials,
                cudaStream_t stream);
std::size_t column_sum_bytes(std::int64_t rows, std::int64_t channels);

}  // namespace arbalest::engine::cuda
