#include "tests/cuda_stand_in/cudnn_problem.h"

namespace arbalest::tests::cuda_stand_in {

Problem problem_of(const char* function, cudnnHandle_t handle, cudnnTensorDescriptor_t input,
                   cudnnFilterDescriptor_t weights, cudnnConvolutionDescriptor_t convolution,
                   cudnnTensorDescriptor_t output) {
  Problem problem;
  const bool alive = is_alive(handle, "cuDNN handle", function) && is_alive(input, "tensor descriptor", function) &&
                     is_alive(weights, "filter descriptor", function) &&
                     is_alive(convolution, "convolution descriptor", function) &&
                     is_alive(output, "tensor descriptor", function);
  if (!alive) {
    problem.status = CUDNN_STATUS_BAD_PARAM;
    return problem;
  }
  problem.geometry = convolution->geometry;
  problem.geometry.input = input->extents;
  problem.geometry.weights = weights->extents;
  problem.geometry.output = output->extents;
  problem.math = convolution->math;
  const Number number = input->extents.number;
  const bool one_type = weights->extents.number == number && output->extents.number == number;
  // Products of bfloat16 are tensor cores' work; and unless told otherwise, tensor cores compute those of float32, too.
  if (!one_type || (number == Number::kBFloat16 && problem.math == CUDNN_FMA_MATH)) {
    problem.status = CUDNN_STATUS_NOT_SUPPORTED;
  } else if (number == Number::kFloat32 && problem.math != CUDNN_FMA_MATH) {
    for (Extents* extents : {&problem.geometry.input, &problem.geometry.weights, &problem.geometry.output}) {
      extents->number = Number::kTensorFloat32;
    }
  }
  const int groups = problem.geometry.groups;
  const bool are_groups = input->extents.c == groups * weights->extents.c && weights->extents.n % groups == 0;
  if (!are_groups || problem.geometry.output != output_extents(problem.geometry)) {
    problem.status = CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
  }
  return problem;
}

}  // namespace arbalest::tests::cuda_stand_in
