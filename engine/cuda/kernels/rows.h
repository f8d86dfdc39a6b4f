// Rows of a matrix, such as class scores [examples, classes], shared out to the threads of a grid: kRowLanes
// neighboring threads have a row, and a lane has every kRowLanes-th element of it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "engine/cuda/device/launch.h"
#include "engine/elementwise/bfloat16.h"
#include "engine/elementwise/exponential.h"

namespace arbalest::engine::cuda {

inline constexpr int kRowLanes = 16;
inline constexpr int kBlockRows = kThreads / kRowLanes;

// Blocks in which every row has its lanes.
inline std::int64_t blocks_of_rows(std::int64_t rows) {
  return std::clamp<std::int64_t>((rows + kBlockRows - 1) / kBlockRows, 1, kMaxBlocks);
}

// A single block where that is less work than the second kernel that adds up what several blocks found.
inline std::int64_t row_blocks(std::int64_t examples, std::int64_t classes) {
  constexpr std::int64_t kOneBlock = 1024;  // elements
  if (examples * classes <= kOneBlock) return 1;
  return blocks_of_rows(examples);
}

struct RowPlace {
  std::int64_t row;
  int slot;  // of the row among the kBlockRows that the block has at the time
  int lane;
};

// Calls body(place) for the rows that fall to the block, in all its threads together, so that body may use shared
// memory [kBlockRows, kRowLanes] and synchronize; the last rows may lie beyond the matrix.
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

// exp(a - largest) of the lane's classes, summed; written to `row`, unless null.
template <typename T>
__device__ float sum_exponentials(const T* logits, float largest, std::int64_t classes, int lane, float* row) {
  float sum = 0.0F;
  for (std::int64_t c = lane; c < classes; c += kRowLanes) {
    const float value = elementwise::exponential(elementwise::load(logits[c]) - largest);
    sum += value;
    if (row != nullptr) row[c] = value;
  }
  return sum;
}

// Over what the lanes of a row have found, in one order.
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
