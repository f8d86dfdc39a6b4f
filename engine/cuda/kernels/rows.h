// Distributes the rows of a matrix, such as class scores [examples, classes], over the threads of a grid. Each row has
// kRowLanes neighboring threads (lanes). Each lane handles every kRowLanes-th element of the row.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "engine/cuda/runtime/launch.h"
#include "engine/elementwise/bfloat16.h"
#include "engine/elementwise/exponential.h"

namespace arbalest::engine::cuda {

inline constexpr int kRowLanes = 16;
inline constexpr int kBlockRows = kThreads / kRowLanes;

// Number of blocks that gives every row its lanes.
inline std::int64_t blocks_of_rows(std::int64_t rows) {
  return std::clamp<std::int64_t>((rows + kBlockRows - 1) / kBlockRows, 1, kMaxBlocks);
}

// One block if that takes less time than a second kernel that adds up the blocks' partial results.
inline std::int64_t row_blocks(std::int64_t examples, std::int64_t classes) {
  constexpr std::int64_t kOneBlock = 1024;  // elements
  if (examples * classes <= kOneBlock) return 1;
  return blocks_of_rows(examples);
}

struct RowPlace {
  std::int64_t row;
  int slot;  // index among the kBlockRows rows that the block handles at a time
  int lane;
};

// Calls body(place) for the rows assigned to the block. All threads of the block call it together, so body may use
// shared memory [kBlockRows, kRowLanes] and synchronize. The last rows may be beyond the end of the matrix.
template <typename Body>
__device__ void for_rows(std::int64_t rows, const Body& body) {
  const auto lane = static_cast<int>(threadIdx.x % kRowLanes);
  const auto slot = static_cast<int>(threadIdx.x / kRowLanes);
  for (std::int64_t first = std::int64_t{blockIdx.x} * kBlockRows; first < rows;
       first += std::int64_t{gridDim.x} * kBlockRows) {
    body(RowPlace{first + slot, slot, lane});
    __syncthreads();  // shared memory is written again
  }
}

// Below, `T` is the type of the logits of one row.

template <typename T>
__device__ float largest_of_lane(const T* logits, std::int64_t classes, int lane) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t c = lane; c < classes; c += kRowLanes) largest = std::max(largest, elementwise::load(logits[c]));
  return largest;
}

// Returns the sum of exp(a - largest) over the lane's classes.
template <typename T>
__device__ float sum_exponentials(const T* logits, float largest, std::int64_t classes, int lane) {
  float sum = 0.0F;
  for (std::int64_t c = lane; c < classes; c += kRowLanes) {
    sum += elementwise::exponential(elementwise::load(logits[c]) - largest);
  }
  return sum;
}

// These reduce the results of a row's lanes, in a fixed order.
__device__ inline float largest_of_lanes(const float* lanes) {
  float largest = lanes[0];
  for (int lane = 1; lane < kRowLanes; ++lane) largest = std::max(largest, lanes[lane]);
  return largest;
}

template <typename T>
__device__ T sum_of_lanes(const T* lanes) {
  T sum = 0;
  for (int lane = 0; lane < kRowLanes; ++lane) sum += lanes[lane];
  return sum;
}

}  // namespace arbalest::engine::cuda
