#include "engine/cuda/kernels/transpose.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

constexpr int kTile = 32;
constexpr int kTileRows = kThreads / kTile;  // rows that the block moves at once

// Transposes `matrices` matrices [rows, columns] to [columns, rows]. Tiles go through shared memory, so that
// neighboring threads read and write neighboring elements.
template <typename From, typename To>
__device__ void transpose_matrices(const From* from, To* to, std::int64_t matrices, std::int64_t rows,
                                   std::int64_t columns) {
  __shared__ float tile[kTile][kTile + 1];  // one extra column: a column's elements are in different banks
  const auto x = static_cast<int>(threadIdx.x % kTile);
  const auto first_y = static_cast<int>(threadIdx.x / kTile);
  const std::int64_t tiles_down = (rows + kTile - 1) / kTile;
  const std::int64_t tiles_across = (columns + kTile - 1) / kTile;
  for (std::int64_t i = blockIdx.x; i < matrices * tiles_down * tiles_across; i += gridDim.x) {
    const std::int64_t matrix = i / (tiles_down * tiles_across) * rows * columns;
    const std::int64_t row = i / tiles_across % tiles_down * kTile;
    const std::int64_t column = i % tiles_across * kTile;
    for (int y = first_y; y < kTile; y += kTileRows) {
      if (row + y < rows && column + x < columns)
        tile[y][x] = elementwise::load(from[matrix + (row + y) * columns + column + x]);
    }
    __syncthreads();
    for (int y = first_y; y < kTile; y += kTileRows) {
      if (row + x < rows && column + y < columns)
        elementwise::store(tile[x][y], to[matrix + (column + y) * rows + row + x]);
    }
    __syncthreads();
  }
}

template <typename From, typename To>
__device__ void change_type(const From* from, To* to, std::int64_t elements) {
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    elementwise::store(elementwise::load(from[i]), to[i]);
  }
}

template <typename From, typename To>
void launch_copy(const void* from, void* to, const Shape& shape, Order from_order, Order to_order,
                 const TeamStream& stream) {
  const auto* source = static_cast<const From*>(from);
  auto* target = static_cast<To*>(to);
  if (from_order == to_order) {
    launch<change_type<From, To>>(blocks_for(shape.elements()), stream, source, target, shape.elements());
    return;
  }
  ARBALEST_CHECK(shape.rank() == 4);
  const std::int64_t pixels = shape[2] * shape[3];
  const bool to_last = to_order == Order::kChannelsLast;  // [n, c, pixels] -> [n, pixels, c]
  const std::int64_t rows = to_last ? shape[1] : pixels;
  const std::int64_t columns = to_last ? pixels : shape[1];
  const std::int64_t tiles = shape[0] * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  launch<transpose_matrices<From, To>>(std::clamp<std::int64_t>(tiles, 1, kMaxBlocks), stream, source, target, shape[0],
                                       rows, columns);
}

template <typename From>
void launch_copy_to(DType to_type, const void* from, void* to, const Shape& shape, Order from_order, Order to_order,
                    const TeamStream& stream) {
  const auto run = to_type == DType::kBFloat16 ? launch_copy<From, BFloat16> : launch_copy<From, float>;
  run(from, to, shape, from_order, to_order, stream);
}

}  // namespace

void transpose(const void* from, const Arrangement& from_arrangement, void* to, const Arrangement& to_arrangement,
               const Shape& shape, const TeamStream& stream) {
  if (from_arrangement == to_arrangement) {
    const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * size_of(to_arrangement.dtype);
    if (from == to) return;
    for_each_replica(stream, [&](const auto& place) {
      ARBALEST_CUDA(cudaMemcpyAsync(place(to), place(from), bytes, cudaMemcpyDeviceToDevice, stream.handle));
    });
    return;
  }
  ARBALEST_CHECK(from != to);
  const auto run = from_arrangement.dtype == DType::kBFloat16 ? launch_copy_to<BFloat16> : launch_copy_to<float>;
  run(to_arrangement.dtype, from, to, shape, from_arrangement.order, to_arrangement.order, stream);
}

}  // namespace arbalest::engine::cuda
