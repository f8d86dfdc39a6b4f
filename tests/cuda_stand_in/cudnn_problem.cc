#include "tests/cuda_stand_in/cudnn_problem.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

std::size_t bytes_of(const Extents& extents, int channels) {
  return size_of(extents.number) * static_cast<std::size_t>(extents.n) * static_cast<std::size_t>(channels) *
         static_cast<std::size_t>(extents.h) * static_cast<std::size_t>(extents.w);
}

}  // namespace

std::size_t copied_bytes(const Problem& problem, cudnnMathType_t math) {
  constexpr int kTensorCoreChannels = 8;
  const Geometry& g = problem.geometry;
  std::size_t bytes = 0;
  for (const Extents* of : {&g.input, &g.weights, &g.output}) {
    const bool orders_differ = of->c > 1 && of->h * of->w > 1;
    const int padded = (of->c + kTensorCoreChannels - 1) / kTensorCoreChannels * kTensorCoreChannels;
    if (math == CUDNN_FMA_MATH && of->channels_last && orders_differ) bytes += bytes_of(*of, of->c);
    if (math == CUDNN_TENSOR_OP_MATH && of->number == Number::kBFloat16 && padded != of->c) {
      bytes += bytes_of(*of, padded);
    }
  }
  return bytes;
}

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
  // Unless the math type is CUDNN_FMA_MATH, tensor cores also compute products of float32.
  if (!one_type) {
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
