// A convolution as cuDNN's calls describe it, and the algorithms that the stand-in offers for it. Some algorithms are
// not repeatable, need tensor cores, convert their inputs to float16, or need more memory than a device has. They
// follow cuDNN 9.19's answers for an H100. Gradients in bfloat16 have no repeatable algorithm without tensor cores.
// Algorithms without tensor cores transpose channels-last tensors in the workspace; for weight gradients cuDNN itself
// does not. Algorithms with tensor cores pad channels of bfloat16 in the workspace.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/cudnn_handles.h"

namespace arbalest::tests::cuda_stand_in {

enum class Types { kFloat32, kAll };

template <typename Algorithm>
struct Candidate {
  Algorithm algorithm;
  cudnnMathType_t math;
  bool repeatable;
  std::size_t workspace;  // bytes, without copies of tensors
  Types types = Types::kAll;
};

// The candidates are sorted from fastest to slowest, like the results of cuDNN's heuristics.
inline constexpr std::size_t kHuge = std::size_t{1} << 40U;
inline constexpr std::array kForward = {
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, true, 0},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CUDNN_TENSOR_OP_MATH, true, 256},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_TENSOR_OP_MATH, true, 128},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_FMA_MATH, true, kHuge, Types::kFloat32},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_FMA_MATH, true, 256, Types::kFloat32},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_FMA_MATH, true, 0},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CUDNN_FMA_MATH, true, 768, Types::kFloat32},
};
inline constexpr std::array kBackwardFilter = {
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, true, 0},
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, CUDNN_TENSOR_OP_MATH, true, 1024},
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_TENSOR_OP_MATH, true, 128},
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_FMA_MATH, false, 0},
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_FMA_MATH, true, 512, Types::kFloat32},
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, CUDNN_FMA_MATH, true, 640, Types::kFloat32},
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, CUDNN_FMA_MATH, true, 768, Types::kFloat32},
};
inline constexpr std::array kBackwardData = {
    Candidate{CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, true, 0},
    Candidate{CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, CUDNN_TENSOR_OP_MATH, true, 1024},
    Candidate{CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_TENSOR_OP_MATH, true, 128},
    Candidate{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_FMA_MATH, false, 0},
    Candidate{CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_FMA_MATH, true, 512, Types::kFloat32},
    Candidate{CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_FMA_MATH, true, 640, Types::kFloat32},
    Candidate{CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, CUDNN_FMA_MATH, true, 768, Types::kFloat32},
};

// A convolution made of several descriptors. `status`: whether they fit together.
struct Problem {
  Geometry geometry;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
};

Problem problem_of(const char* function, cudnnHandle_t handle, cudnnTensorDescriptor_t input,
                   cudnnFilterDescriptor_t weights, cudnnConvolutionDescriptor_t convolution,
                   cudnnTensorDescriptor_t output);

// Returns the candidate for `algorithm` with the math type of the convolution's descriptor, or null.
template <typename Candidates, typename Algorithm>
auto find_candidate(const Problem& problem, const Candidates& candidates, Algorithm algorithm) {
  const cudnnMathType_t math = problem.math == CUDNN_DEFAULT_MATH ? CUDNN_TENSOR_OP_MATH : problem.math;
  const bool halves = problem.geometry.input.number == Number::kBFloat16;
  for (const auto& candidate : candidates) {
    if (halves && candidate.types == Types::kFloat32) continue;
    if (candidate.algorithm == algorithm && candidate.math == math) return &candidate;
  }
  return static_cast<decltype(candidates.data())>(nullptr);
}

// Returns the bytes of a candidate's copies of tensors in the workspace.
std::size_t copied_bytes(const Problem& problem, cudnnMathType_t math);

template <typename Body>
cudnnStatus_t cudnn_call(const char* function, const Body& body) {
  return library_call(function, InCapture::kLegal, CUDNN_STATUS_EXECUTION_FAILED_CUDART, body);
}

}  // namespace arbalest::tests::cuda_stand_in
