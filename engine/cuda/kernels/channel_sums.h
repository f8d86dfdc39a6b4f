// Sums over the rows of each channel, in one kernel: the last block of a channel to finish adds up the partial sums of
// all blocks. The order of additions depends on the extents only.
#pragma once

#include <cstdint>

#include "engine/cuda/kernels/columns.h"
#include "engine/cuda/kernels/last_block.h"

namespace arbalest::engine::cuda {

// Joins the values of all lanes of a channel, in a fixed order. The first lane gets the result; the values of other
// lanes change. All threads of the block must call this. T has joined(const T&).
template <int kChannels, typename T>
__device__ void join_lanes(T (&values)[kChannels], const ColumnPlace& at, const ColumnCut& cut) {
  __shared__ T all[kChannels][kThreads];
  for (int c = 0; c < kChannels; ++c) all[c][at.thread] = values[c];
  for (std::int64_t half = at.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (at.lane >= half) continue;
    for (int c = 0; c < kChannels; ++c) {
      all[c][at.thread] = all[c][at.thread].joined(all[c][at.thread + half * cut.tile]);
    }
  }
  for (int c = 0; c < kChannels; ++c) values[c] = all[c][at.thread];
  __syncthreads();  // the next call writes the array again
}

// Device memory that the blocks of one kernel share.
template <typename T>
struct BlockSums {
  T* partials;         // [slices, channels]; null if there is one slice
  unsigned* arrivals;  // [tiles], zeros between kernels

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(BlockSums& of, Visitor&& visit) {
    visit(of.partials);
    visit(of.arrivals);
  }
};

// Joins the values of all threads of all blocks for the kChannels channels of each column (there are `columns`
// columns). Returns true in one thread per column, whose `values` are the result. All threads must call this. T has
// joined(const T&), T{} is its neutral element, and `T::read(const T*)` reads a value that another block wrote.
template <int kChannels, typename T>
__device__ bool join_blocks(T (&values)[kChannels], const ColumnPlace& at, const ColumnCut& cut, std::int64_t columns,
                            const BlockSums<T>& shared) {
  const bool is_column = at.channel < columns;
  join_lanes(values, at, cut);
  if (cut.slices == 1) return at.lane == 0 && is_column;
  const std::int64_t channels = columns * kChannels;
  if (at.lane == 0 && is_column) {
    for (int c = 0; c < kChannels; ++c) {
      shared.partials[at.slice * channels + at.channel * kChannels + c] = values[c];
    }
  }
  unsigned* const arrivals = shared.arrivals + blockIdx.x % cut.tiles;
  if (!is_last_block(arrivals, static_cast<unsigned>(cut.slices))) return false;
  for (int c = 0; c < kChannels; ++c) {
    values[c] = T{};
    if (!is_column) continue;
    for (std::int64_t slice = at.lane; slice < cut.slices; slice += at.lanes) {
      values[c] = values[c].joined(T::read(shared.partials + slice * channels + at.channel * kChannels + c));
    }
  }
  join_lanes(values, at, cut);
  return at.lane == 0 && is_column;
}

}  // namespace arbalest::engine::cuda
