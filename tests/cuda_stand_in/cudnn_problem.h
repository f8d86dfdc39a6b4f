// A convolution as cuDNN's calls describe it, and the algorithms that the stand-in offers for it: some do not repeat
// their results, want tensor cores, make float16 of what they read, or want more memory than there is.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/cudnn_handles.h"

namespace arbalest::tests::cuda_stand_in {

template <typename Algorithm>
struct Candidate {
  Algorithm algorithm;
  cudnnMathType_t math;
  bool repeatable;
  std::size_t workspace;  // bytes, beyond what the output takes
};

// Fastest first, as from cuDNN's heuristics.
inline constexpr std::size_t kHuge = std::size_t{1} << 40U;
inline constexpr std::array kForward = {
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, true, 0},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CUDNN_TENSOR_OP_MATH, true, 256},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_FMA_MATH, true, kHuge},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_FMA_MATH, true, 256},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_FMA_MATH, true, 0},
};
inline constexpr std::array kBackwardFilter = {
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, true, 0},
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, CUDNN_TENSOR_OP_MATH, true, 1024},
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_FMA_MATH, false, 0},
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_FMA_MATH, true, 512},
};
inline constexpr std::array kBackwardData = {
    Candidate{CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, true, 0},
    Candidate{CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, CUDNN_TENSOR_OP_MATH, true, 1024},
    Candidate{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_FMA_MATH, false, 0},
    Candidate{CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_FMA_MATH, true, 512},
};

// A convolution of several descriptors; status: whether they fit.
struct Problem {
  Geometry geometry;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
};

Problem problem_of(const char* function, cudnnHandle_t handle, cudnnTensorDescriptor_t input,
                   cudnnFilterDescriptor_t weights, cudnnConvolutionDescriptor_t convolution,
                   cudnnTensorDescriptor_t output);

template <typename Body>
cudnnStatus_t cudnn_call(const char* function, const Body& body) {
  return library_call(function, InCapture::kLegal, CUDNN_STATUS_EXECUTION_FAILED_CUDART, body);
}

}  // namespace arbalest::tests::cuda_stand_in
