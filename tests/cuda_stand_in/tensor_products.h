// The products of tensor cores, for the running warp. engine/cuda/kernels/tensor_core.h states which lane holds which
// number.
#pragma once

#include "engine/cuda/kernels/tensor_core_factors.h"

namespace arbalest::tests::cuda_stand_in {

// d += a b. Each product is exact. They are added to d one after another. A factor that is not rounded to TF32 is a
// violation: a GPU would ignore its last bits. If not all lanes come, d becomes NaN.
void multiply_add(float (&d)[4], const engine::cuda::Tf32 (&a)[4], const engine::cuda::Tf32 (&b)[2], int line);
void multiply_add(float (&d)[4], const engine::cuda::BFloat16Pair (&a)[4], const engine::cuda::BFloat16Pair (&b)[2],
                  int line);

}  // namespace arbalest::tests::cuda_stand_in
