// Matrix products of one warp on tensor cores (PTX ISA, "Matrix multiply-accumulate operation using mma instruction",
// m16n8k8 and m16n8k16): d += a b, where d is [16, 8], a is [16, k] and b is [k, 8]. Products are exact; sums are
// float32, in an order that PTX leaves open. All 32 lanes of the warp must call the same function together.
//
// Each lane holds a part of each matrix. With group = lane / 4 and place = lane % 4:
//   d[0], d[1]  row group      columns 2 place, 2 place + 1
//   d[2], d[3]  row group + 8  columns 2 place, 2 place + 1
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cstdint>

#include "engine/cuda/kernels/tensor_core_factors.h"

namespace arbalest::engine::cuda {

// Rounds to nearest, ties away from zero. Values beyond the largest TF32 become infinity. NaN stays NaN.
__device__ inline Tf32 round_to_tf32(float value) {
  Tf32 rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded.bits) : "f"(value));
  return rounded;
}

// k = 8. With group and place as above:
//   a[0], a[1]  column place      rows group, group + 8
//   a[2], a[3]  column place + 4  rows group, group + 8
//   b[0], b[1]  column group      rows place, place + 4
__device__ inline void multiply_add_tf32(float (&d)[4], const Tf32 (&a)[4], const Tf32 (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0].bits), "r"(a[1].bits), "r"(a[2].bits), "r"(a[3].bits), "r"(b[0].bits), "r"(b[1].bits));
}

// k = 16. With group and place as above:
//   a[0], a[1]  columns 2 place, 2 place + 1      rows group, group + 8
//   a[2], a[3]  columns 2 place + 8, 2 place + 9  rows group, group + 8
//   b[0]        column group  rows 2 place, 2 place + 1
//   b[1]        column group  rows 2 place + 8, 2 place + 9
__device__ inline void multiply_add_bf16(float (&d)[4], const BFloat16Pair (&a)[4], const BFloat16Pair (&b)[2]) {
  const auto bits = [](const BFloat16Pair& pair) { return std::bit_cast<std::uint32_t>(pair); };
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(bits(a[0])), "r"(bits(a[1])), "r"(bits(a[2])), "r"(bits(a[3])), "r"(bits(b[0])), "r"(bits(b[1])));
}

}  // namespace arbalest::engine::cuda
