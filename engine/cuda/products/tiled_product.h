// The product of two matrices in float32, tile by tile: result[row, column] = sum over k of left[row, k] right[k,
// column]. The matrices need not be stored: their operands say how an element is read. Convolutions and dense layers
// are such products.
//
// Without tensor cores, the order of additions depends on the extents only (explicit fused multiply-adds, no atomic
// sums), so every GPU, the stand-in of the tests, and every size of a team get the same bits. With tensor cores, a GPU
// adds up eight products in an order of its own.
//
// An operand has
//   kChunk                        number of neighboring k that it reads at once; the extent of k is a multiple of it
//   kLanesAlongInner              whether neighboring threads read neighboring k of one line, or one k of neighbors
//   outer(i), inner(k)            what it needs to know about row or column i, and about the chunk that begins at k
//   read(outer, inner, values)    reads float values[kChunk]
// A result has
//   store(row, column, sums)      takes float sums[4][4] of the rows and columns from there on, of which some may be
//                                 beyond the last
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine/cuda/kernels/last_block.h"
#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/products/tile_arithmetic.h"

namespace arbalest::engine::cuda {

inline constexpr int kMostSlicedTiles = kMaxBlocks / 2;  // of a product that divides its additions among blocks

// A block of kThreads threads computes a tile of kRows x kColumns. Its threads form kParts parts, which share the
// additions between them.
template <int kRowsOfTile, int kColumnsOfTile, int kPartsOfTile, typename ArithmeticOf>
struct Tile {
  using Arithmetic = ArithmeticOf;
  static constexpr int kRows = kRowsOfTile;
  static constexpr int kColumns = kColumnsOfTile;
  static constexpr int kParts = kPartsOfTile;
  static constexpr int kThreadsOfPart = kRows * kColumns / (kSide * kSide);
  static_assert(kThreadsOfPart * kParts == kThreads);

  using Left = typename Arithmetic::Factor[kInner][kRows + Arithmetic::padding(kRows)];
  using Right = typename Arithmetic::Factor[kInner][kColumns + Arithmetic::padding(kColumns)];
  // Two of each: while one is read, the other is written.
  struct Memory {
    alignas(16) Left left[2][kParts];
    alignas(16) Right right[2][kParts];
  };
  // Afterwards the same memory holds the parts' sums.
  static_assert(sizeof(Memory) >= sizeof(float) * kThreads * kSide * kSide);
};

// How a product is divided among blocks. The cut depends on the extents only.
struct ProductCut {
  int rows = 0;
  int columns = 0;
  int inner = 0;  // number of k
  int row_tiles = 1;
  int tiles = 1;
  int slices = 1;          // blocks that share the additions of a tile
  int inner_of_slice = 0;  // a multiple of kParts * kInner

  std::int64_t blocks() const { return std::int64_t{tiles} * slices; }
};

// Memory in which the slices of a tile add up; of no use if there is one slice.
struct SliceMemory {
  float* partials = nullptr;     // [slices, tiles, kRows, kColumns]
  unsigned* arrivals = nullptr;  // [tiles], zeros between kernels

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(SliceMemory& of, Visitor&& visit) {
    visit(of.partials);
    visit(of.arrivals);
  }
};

template <typename Tile>
ProductCut cut_product(std::int64_t rows, std::int64_t columns, std::int64_t inner) {
  constexpr int kBlocks = 64;  // from this number on, teams and streams fill a GPU
  constexpr int kLeastTurns = 4;
  constexpr int kTurn = Tile::kParts * kInner;
  const auto parts_of = [](std::int64_t of, std::int64_t by) { return static_cast<int>((of + by - 1) / by); };
  ProductCut cut;
  cut.rows = static_cast<int>(rows);
  cut.columns = static_cast<int>(columns);
  cut.inner = static_cast<int>(inner);
  cut.row_tiles = parts_of(rows, Tile::kRows);
  cut.tiles = cut.row_tiles * parts_of(columns, Tile::kColumns);
  const int turns = parts_of(inner, kTurn);
  const int wanted =
      cut.tiles > kMostSlicedTiles ? 1 : std::clamp(kBlocks / cut.tiles, 1, parts_of(turns, kLeastTurns));
  cut.inner_of_slice = parts_of(turns, wanted) * kTurn;
  cut.slices = parts_of(inner, cut.inner_of_slice);
  return cut;
}

template <typename Tile>
std::size_t slice_bytes(const ProductCut& cut) {
  return cut.slices == 1 ? 0 : sizeof(float) * static_cast<std::size_t>(cut.blocks()) * Tile::kRows * Tile::kColumns;
}

// The elements of an operand that one thread brings to shared memory: kOuter lines, of which the block has those from
// `first` on. All of `k` below are first numbers of a part's turn.
template <typename Operand, int kOuter, int kThreadsOfPart>
class Fetch {
  static constexpr int kChunk = Operand::kChunk;
  static constexpr int kChunksOfPart = kOuter * kInner / kChunk;
  static constexpr int kChunks = (kChunksOfPart + kThreadsOfPart - 1) / kThreadsOfPart;
  static constexpr int kChunksOfLine = kInner / kChunk;

 public:
  __device__ Fetch(const Operand& operand, int first, int extent, int thread) : operand_(operand), thread_(thread) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int line = first + outer_of(c);
      is_line_[c] = holds(c) && line < extent;
      outer_[c] = operand.outer(line);
    }
  }

  // Reads into registers. Zeros stand for lines beyond the last, and for k from `end` on.
  __device__ void read(int k, int end) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int at = k + inner_of(c);
      if (is_line_[c] && at < end) {
        operand_.read(outer_[c], operand_.inner(at), values_[c]);
      } else {
#pragma unroll
        for (int i = 0; i < kChunk; ++i) values_[c][i] = 0.0F;
      }
    }
  }

  template <typename Arithmetic>
  __device__ void write(typename Arithmetic::Factor (&memory)[kInner][kOuter + Arithmetic::padding(kOuter)]) const {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (!holds(c)) continue;
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        memory[inner_of(c) + i][outer_of(c)] = Arithmetic::factor(values_[c][i]);
      }
    }
  }

 private:
  __device__ int place(int c) const { return thread_ + c * kThreadsOfPart; }
  __device__ bool holds(int c) const { return kChunksOfPart % kThreadsOfPart == 0 || place(c) < kChunksOfPart; }
  __device__ int outer_of(int c) const {
    return Operand::kLanesAlongInner ? place(c) / kChunksOfLine : place(c) % kOuter;
  }
  __device__ int inner_of(int c) const {
    return (Operand::kLanesAlongInner ? place(c) % kChunksOfLine : place(c) / kOuter) * kChunk;
  }

  const Operand& operand_;
  const int thread_;
  typename Operand::Outer outer_[kChunks];
  bool is_line_[kChunks];
  float values_[kChunks][kChunk];
};

// Adds the sums of all parts to those of the first one, in order.
template <typename Tile>
__device__ void add_parts(float (&sums)[kSide][kSide], int part, int thread, typename Tile::Memory& memory) {
  if constexpr (Tile::kParts > 1) {
    auto* const all = reinterpret_cast<Pack<float, kSide>*>(&memory);  // [part, row, thread]
    constexpr int kOfPart = kSide * Tile::kThreadsOfPart;
    __syncthreads();  // the memory has been read
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
      all[part * kOfPart + i * Tile::kThreadsOfPart + thread] = *reinterpret_cast<const Pack<float, kSide>*>(sums[i]);
    }
    __syncthreads();
    if (part != 0) return;
    for (int other = 1; other < Tile::kParts; ++other) {
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        const Pack<float, kSide> of_other = all[other * kOfPart + i * Tile::kThreadsOfPart + thread];
#pragma unroll
        for (int j = 0; j < kSide; ++j) sums[i][j] += of_other.at[j];
      }
    }
  }
}

// Adds the sums of all slices in order. Returns true in the block that has them, the last one of the tile.
template <typename Tile>
__device__ bool add_slices(float (&sums)[kSide][kSide], int tile, int slice, bool holds, int thread,
                           const ProductCut& cut, const SliceMemory& slices) {
  if (cut.slices == 1) return true;
  auto* const all = reinterpret_cast<Pack<float, kSide>*>(slices.partials);
  const auto place = [&](int of_slice, int i) {
    return ((std::int64_t{of_slice} * cut.tiles + tile) * kSide + i) * Tile::kThreadsOfPart + thread;
  };
  if (holds) {
#pragma unroll
    for (int i = 0; i < kSide; ++i) all[place(slice, i)] = *reinterpret_cast<const Pack<float, kSide>*>(sums[i]);
  }
  if (!is_last_block(slices.arrivals + tile, static_cast<unsigned>(cut.slices))) return false;
  if (!holds) return true;
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    Pack<float, kSide> sum = all[place(0, i)];
    for (int other = 1; other < cut.slices; ++other) {
      const Pack<float, kSide> of_other = all[place(other, i)];
#pragma unroll
      for (int j = 0; j < kSide; ++j) sum.at[j] += of_other.at[j];
    }
#pragma unroll
    for (int j = 0; j < kSide; ++j) sums[i][j] = sum.at[j];
  }
  return true;
}

// Computes one block's share, `block` of cut.blocks(). All threads of the block must call this.
template <typename Tile, typename Left, typename Right, typename Result>
__device__ void multiply_tile(const Left& left, const Right& right, const Result& result, const ProductCut& cut,
                              const SliceMemory& slices, int block, typename Tile::Memory& memory) {
  constexpr int kThreadsOfPart = Tile::kThreadsOfPart;
  constexpr int kTurn = Tile::kParts * kInner;
  using Arithmetic = typename Tile::Arithmetic;
  const int part = static_cast<int>(threadIdx.x) / kThreadsOfPart;
  const int thread = static_cast<int>(threadIdx.x) % kThreadsOfPart;
  const int tile = block % cut.tiles;
  const int slice = block / cut.tiles;
  const int first_row = tile % cut.row_tiles * Tile::kRows;
  const int first_column = tile / cut.row_tiles * Tile::kColumns;
  const int row = row_of<Tile>(thread);
  const int column = column_of<Tile>(thread);
  const int begin = slice * cut.inner_of_slice;
  const int end = std::min(begin + cut.inner_of_slice, cut.inner);

  Fetch<Left, Tile::kRows, kThreadsOfPart> of_left(left, first_row, cut.rows, thread);
  Fetch<Right, Tile::kColumns, kThreadsOfPart> of_right(right, first_column, cut.columns, thread);
  typename Arithmetic::template Sums<Tile> products;
  int now = 0;
  of_left.read(begin + part * kInner, end);
  of_right.read(begin + part * kInner, end);
  of_left.template write<Arithmetic>(memory.left[now][part]);
  of_right.template write<Arithmetic>(memory.right[now][part]);
  __syncthreads();
  for (int k = begin; k < end; k += kTurn) {
    const int next = k + kTurn;
    if (next < end) {  // these reads are under way during the products
      of_left.read(next + part * kInner, end);
      of_right.read(next + part * kInner, end);
    }
    products.add(memory.left[now][part], memory.right[now][part], thread);
    if (next >= end) break;
    now = 1 - now;
    of_left.template write<Arithmetic>(memory.left[now][part]);
    of_right.template write<Arithmetic>(memory.right[now][part]);
    __syncthreads();
  }
  alignas(16) float sums[kSide][kSide];
  products.collect(sums, part, thread, reinterpret_cast<float*>(&memory));
  add_parts<Tile>(sums, part, thread, memory);
  const bool holds = part == 0;
  if (!add_slices<Tile>(sums, tile, slice, holds, thread, cut, slices)) return;
  if (holds) result.store(first_row + row, first_column + column, sums);
}

}  // namespace arbalest::engine::cuda
