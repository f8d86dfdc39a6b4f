#include "engine/cuda/transpose.h"

#include <algorithm>

#include "engine/cuda/launch.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

constexpr int kTile = 32;
constexpr int kTileRows = kThreads / kTile;  // that the block moves at once

// `matrices` matrices of [rows, columns] become [columns, rows]. Tile by tile through shared memory, so that
// neighboring threads read and write neighboring elements.
__global__ void transpose_matrices(const float* from, float* to, std::int64_t matrices, std::int64_t rows,
                                   std::int64_t columns) {
  __shared__ float tile[kTile][kTile + 1];  // one more column: a column's elements lie in different banks
  const auto x = static_cast<int>(threadIdx.x % kTile);
  const auto first_y = static_cast<int>(threadIdx.x / kTile);
  const std::int64_t tiles_down = (rows + kTile - 1) / kTile;
  const std::int64_t tiles_across = (columns + kTile - 1) / kTile;
  for (std::int64_t i = blockIdx.x; i < matrices * tiles_down * tiles_across; i += gridDim.x) {
    const std::int64_t matrix = i / (tiles_down * tiles_across) * rows * columns;
    const std::int64_t row = i / tiles_across % tiles_down * kTile;
    const std::int64_t column = i % tiles_across * kTile;
    for (int y = first_y; y < kTile; y += kTileRows) {
      if (row + y < rows && column + x < columns) tile[y][x] = from[matrix + (row + y) * columns + column + x];
    }
    __syncthreads();
    for (int y = first_y; y < kTile; y += kTileRows) {
      if (row + x < rows && column + y < columns) to[matrix + (column + y) * rows + row + x] = tile[x][y];
    }
    __syncthreads();
  }
}

}  // namespace

void transpose(const float* from, float* to, const Shape& shape, Order from_order, Order to_order,
               cudaStream_t stream) {
  if (from_order == to_order) {
    const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * sizeof(float);
    if (from != to) ARBALEST_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
    return;
  }
  ARBALEST_CHECK(shape.rank() == 4 && from != to);
  const std::int64_t pixels = shape[2] * shape[3];
  const bool to_last = to_order == Order::kChannelsLast;  // [n, c, pixels] -> [n, pixels, c]
  const std::int64_t rows = to_last ? shape[1] : pixels;
  const std::int64_t columns = to_last ? pixels : shape[1];
  const std::int64_t tiles = shape[0] * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  launch(transpose_matrices, std::clamp<std::int64_t>(tiles, 1, kMaxBlocks), stream, from, to, shape[0], rows, columns);
}

}  // namespace arbalest::engine::cuda
