// How the threads of a part multiply the lines of a tile in shared memory: with fused multiply-adds, or on tensor
// cores.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "engine/cuda/kernels/tensor_core.h"
#include "engine/cuda/kernels/wide.h"

namespace arbalest::engine::cuda {

inline constexpr int kSide = 4;    // rows and columns of a thread's sums
inline constexpr int kInner = 16;  // k of a part at a time

// A thread's rows and columns in its tile.
template <typename Tile>
__device__ int row_of(int thread) {
  return thread % (Tile::kRows / kSide) * kSide;
}
template <typename Tile>
__device__ int column_of(int thread) {
  return thread / (Tile::kRows / kSide) * kSide;
}

// An arithmetic has
//   Factor, factor(value)   what lies in shared memory
//   padding(length)         additional length of a line there, so that fewer threads meet in a bank
//   kChannelsLast           whether its tensors have channels last; fewer kernels are compiled then
//   kDifferentiates         whether its gradients are read through the derivative of an activation
//   Sums<Tile>              a thread's share of the sums of its part, all of whose threads call
//     add(left, right, thread)              adds the products of kInner k
//     collect(sums, part, thread, memory)   gives each thread kSide x kSide sums, through shared memory if need be

struct FusedMultiplyAdd {
  using Factor = float;
  static constexpr int padding(int /*length*/) { return 4; }
  static constexpr bool kChannelsLast = false;
  static constexpr bool kDifferentiates = true;
  static __device__ float factor(float value) { return value; }

  template <typename Tile>
  struct Sums {
    float own[kSide][kSide] = {};

    __device__ void add(const typename Tile::Left& left, const typename Tile::Right& right, int thread) {
      const int row = row_of<Tile>(thread);
      const int column = column_of<Tile>(thread);
#pragma unroll
      for (int k = 0; k < kInner; ++k) {
        const auto a = *reinterpret_cast<const Pack<float, kSide>*>(&left[k][row]);
        const auto b = *reinterpret_cast<const Pack<float, kSide>*>(&right[k][column]);
#pragma unroll
        for (int i = 0; i < kSide; ++i) {
#pragma unroll
          for (int j = 0; j < kSide; ++j) own[i][j] = fmaf(a.at[i], b.at[j], own[i][j]);
        }
      }
    }

    __device__ void collect(float (&sums)[kSide][kSide], int /*part*/, int /*thread*/, float* /*memory*/) const {
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
#pragma unroll
        for (int j = 0; j < kSide; ++j) sums[i][j] = own[i][j];
      }
    }
  };
};

// Factors are rounded to TF32, which holds every bfloat16.
struct TensorCores {
  using Factor = Tf32;
  static constexpr int padding(int length) { return length <= 16 ? 4 : 8; }  // all that 48 KiB have room for
  static constexpr bool kChannelsLast = true;
  static constexpr bool kDifferentiates = false;
  static __device__ Tf32 factor(float value) { return round_to_tf32(value); }

  // A warp has kDown x kAcross products of 16 x 8 each (tensor_core.h).
  template <typename Tile>
  struct Sums {
    static constexpr int kWidth = std::min(32, Tile::kColumns);
    static constexpr int kDown = 2 * 16 / kWidth;
    static constexpr int kAcross = kWidth / 8;
    static constexpr int kWarpsAcross = Tile::kColumns / kWidth;

    float own[kDown][kAcross][4] = {};

    __device__ void add(const typename Tile::Left& left, const typename Tile::Right& right, int thread) {
      const int group = thread % 32 / 4;
      const int place = thread % 4;
#pragma unroll
      for (int k = 0; k < kInner; k += 8) {
        Tf32 b[kAcross][2];
#pragma unroll
        for (int across = 0; across < kAcross; ++across) {
          const int column = first_column(thread) + across * 8 + group;
          b[across][0] = right[k + place][column];
          b[across][1] = right[k + place + 4][column];
        }
#pragma unroll
        for (int down = 0; down < kDown; ++down) {
          const int row = first_row(thread) + down * 16 + group;
          const Tf32 a[4] = {left[k + place][row], left[k + place][row + 8], left[k + place + 4][row],
                             left[k + place + 4][row + 8]};
#pragma unroll
          for (int across = 0; across < kAcross; ++across) multiply_add_tf32(own[down][across], a, b[across]);
        }
      }
    }

    __device__ void collect(float (&sums)[kSide][kSide], int part, int thread, float* memory) const {
      float* const of_part = memory + part * Tile::kRows * Tile::kColumns;
      const int group = thread % 32 / 4;
      const int place = thread % 4;
      __syncthreads();  // the memory has been read
#pragma unroll
      for (int down = 0; down < kDown; ++down) {
#pragma unroll
        for (int across = 0; across < kAcross; ++across) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int row = first_row(thread) + down * 16 + group + i / 2 * 8;
            const int column = first_column(thread) + across * 8 + 2 * place + i % 2;
            of_part[row * Tile::kColumns + column] = own[down][across][i];
          }
        }
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        const int row = row_of<Tile>(thread) + i;
        const auto line =
            *reinterpret_cast<const Pack<float, kSide>*>(of_part + row * Tile::kColumns + column_of<Tile>(thread));
#pragma unroll
        for (int j = 0; j < kSide; ++j) sums[i][j] = line.at[j];
      }
    }

   private:
    static __device__ int first_row(int thread) { return thread / 32 / kWarpsAcross * (kDown * 16); }
    static __device__ int first_column(int thread) { return thread / 32 % kWarpsAcross * kWidth; }
  };
};

}  // namespace arbalest::engine::cuda
