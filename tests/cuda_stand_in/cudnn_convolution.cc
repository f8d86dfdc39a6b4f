// cuDNN's convolutions: candidates of algorithms, of which some do not repeat their results or want tensor cores, and
// the work itself. A workspace is overwritten by whatever uses it.
#include <cudnn.h>

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/cudnn_handles.h"
#include "tests/cuda_stand_in/memory.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

std::size_t bytes(const Extents& extents) {
  return sizeof(float) * static_cast<std::size_t>(extents.n) * static_cast<std::size_t>(extents.c) *
         static_cast<std::size_t>(extents.h) * static_cast<std::size_t>(extents.w);
}

template <typename Algorithm>
struct Candidate {
  Algorithm algorithm;
  cudnnMathType_t math;
  bool repeatable;
  std::size_t workspace;  // bytes, beyond what the output takes
};

// Fastest first, as from cuDNN's heuristics.
constexpr std::size_t kHuge = std::size_t{1} << 40U;
constexpr std::array kForward = {
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CUDNN_TENSOR_OP_MATH, true, 256},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_FMA_MATH, true, kHuge},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_FMA_MATH, true, 256},
    Candidate{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_FMA_MATH, true, 0},
};
constexpr std::array kBackwardFilter = {
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_FMA_MATH, false, 0},
    Candidate{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_FMA_MATH, true, 512},
};
constexpr std::array kBackwardData = {
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
  if (input->extents.c != weights->extents.c || output->extents != output_extents(problem.geometry)) {
    problem.status = CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
  }
  return problem;
}

template <typename Candidates, typename Result>
cudnnStatus_t list(const Problem& problem, const Candidates& candidates, int wanted, int* found, Result* results) {
  if (problem.status != CUDNN_STATUS_SUCCESS) return problem.status;
  *found = 0;
  for (const auto& candidate : candidates) {
    if (*found == wanted) break;
    Result& result = results[(*found)++];
    result = {};
    result.algo = candidate.algorithm;
    result.status = CUDNN_STATUS_SUCCESS;
    result.time = static_cast<float>(*found);
    result.memory = candidate.workspace;
    result.determinism = candidate.repeatable ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
    result.mathType = candidate.math;
  }
  return CUDNN_STATUS_SUCCESS;
}

template <typename Candidates, typename Algorithm>
cudnnStatus_t workspace_size(const Problem& problem, const Candidates& candidates, Algorithm algorithm,
                             std::size_t* size) {
  if (problem.status != CUDNN_STATUS_SUCCESS) return problem.status;
  for (const auto& candidate : candidates) {
    if (candidate.algorithm != algorithm) continue;
    *size = candidate.workspace;
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

struct Operand {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

// One call's memory and what it does with it.
struct Task {
  const char* function;
  cudnnHandle_t handle;
  Operand first;
  Operand second;
  Operand result;
  void* workspace;
  std::size_t workspace_bytes;
};

template <typename Candidates, typename Algorithm>
cudnnStatus_t check_algorithm(const Problem& problem, const Candidates& candidates, Algorithm algorithm,
                              const Task& task) {
  if (problem.status != CUDNN_STATUS_SUCCESS) return problem.status;
  for (const auto& candidate : candidates) {
    if (candidate.algorithm != algorithm) continue;
    if (!candidate.repeatable) violation(fmt::format("{}: an algorithm whose results vary", task.function));
    if (candidate.math == CUDNN_TENSOR_OP_MATH || problem.math != CUDNN_FMA_MATH) {
      violation(fmt::format("{}: float32 with the precision of TF32", task.function));
    }
    return task.workspace_bytes < candidate.workspace ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t submit(const Task& task, const std::function<void()>& compute) {
  if (task.handle->device != this_thread().device) {
    violation(fmt::format("{}: a handle of device {} while device {} is current", task.function, task.handle->device,
                          this_thread().device));
    return CUDNN_STATUS_EXECUTION_FAILED_CUDART;
  }
  std::vector<const void*> uses;
  for (const Operand& operand : {task.first, task.second, task.result, {task.workspace, task.workspace_bytes}}) {
    if (operand.bytes == 0) continue;
    if (!check_device_range(operand.data, operand.bytes, task.handle->device, task.function)) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    uses.push_back(operand.data);
  }
  const auto run = [=] {
    if (task.workspace_bytes > 0) std::memset(task.workspace, 0xFF, task.workspace_bytes);
    compute();
  };
  CUstream_st* stream = find_stream(task.handle->stream, task.function);
  if (stream == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const cudaError_t result = enqueue(*stream, make_work(task.function, std::move(uses), run), task.function);
  return result == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED_CUDART;
}

Scaling scaling_of(const void* alpha, const void* beta) {
  return {*static_cast<const float*>(alpha), *static_cast<const float*>(beta)};
}

template <typename Body>
cudnnStatus_t cudnn_call(const char* function, const Body& body) {
  return library_call(function, InCapture::kLegal, CUDNN_STATUS_EXECUTION_FAILED_CUDART, body);
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t input,
                                                     const cudnnFilterDescriptor_t weights,
                                                     const cudnnConvolutionDescriptor_t convolution,
                                                     const cudnnTensorDescriptor_t output, const int wanted, int* found,
                                                     cudnnConvolutionFwdAlgoPerf_t* results) {
  constexpr const char* kName = "cudnnGetConvolutionForwardAlgorithm_v7";
  return cudnn_call(kName, [&] {
    return list(problem_of(kName, handle, input, weights, convolution, output), kForward, wanted, found, results);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t input,
                                                            const cudnnTensorDescriptor_t output,
                                                            const cudnnConvolutionDescriptor_t convolution,
                                                            const cudnnFilterDescriptor_t weights, const int wanted,
                                                            int* found, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  constexpr const char* kName = "cudnnGetConvolutionBackwardFilterAlgorithm_v7";
  return cudnn_call(kName, [&] {
    return list(problem_of(kName, handle, input, weights, convolution, output), kBackwardFilter, wanted, found,
                results);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, const cudnnFilterDescriptor_t weights,
                                                          const cudnnTensorDescriptor_t output,
                                                          const cudnnConvolutionDescriptor_t convolution,
                                                          const cudnnTensorDescriptor_t input, const int wanted,
                                                          int* found, cudnnConvolutionBwdDataAlgoPerf_t* results) {
  constexpr const char* kName = "cudnnGetConvolutionBackwardDataAlgorithm_v7";
  return cudnn_call(kName, [&] {
    return list(problem_of(kName, handle, input, weights, convolution, output), kBackwardData, wanted, found, results);
  });
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t input,
                                                      const cudnnFilterDescriptor_t weights,
                                                      const cudnnConvolutionDescriptor_t convolution,
                                                      const cudnnTensorDescriptor_t output,
                                                      cudnnConvolutionFwdAlgo_t algorithm, std::size_t* size) {
  constexpr const char* kName = "cudnnGetConvolutionForwardWorkspaceSize";
  return cudnn_call(kName, [&] {
    return workspace_size(problem_of(kName, handle, input, weights, convolution, output), kForward, algorithm, size);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t input,
                                                             const cudnnTensorDescriptor_t output,
                                                             const cudnnConvolutionDescriptor_t convolution,
                                                             const cudnnFilterDescriptor_t weights,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                                             std::size_t* size) {
  constexpr const char* kName = "cudnnGetConvolutionBackwardFilterWorkspaceSize";
  return cudnn_call(kName, [&] {
    return workspace_size(problem_of(kName, handle, input, weights, convolution, output), kBackwardFilter, algorithm,
                          size);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t weights,
                                                           const cudnnTensorDescriptor_t output,
                                                           const cudnnConvolutionDescriptor_t convolution,
                                                           const cudnnTensorDescriptor_t input,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* size) {
  constexpr const char* kName = "cudnnGetConvolutionBackwardDataWorkspaceSize";
  return cudnn_call(kName, [&] {
    return workspace_size(problem_of(kName, handle, input, weights, convolution, output), kBackwardData, algorithm,
                          size);
  });
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t input,
                                      const void* x, const cudnnFilterDescriptor_t weights, const void* w,
                                      const cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace, std::size_t size,
                                      const void* beta, const cudnnTensorDescriptor_t output, void* y) {
  constexpr const char* kName = "cudnnConvolutionForward";
  return cudnn_call(kName, [&] {
    const Problem problem = problem_of(kName, handle, input, weights, convolution, output);
    const Geometry g = problem.geometry;
    const Task task{kName, handle, {x, bytes(g.input)}, {w, bytes(g.weights)}, {y, bytes(g.output)}, workspace, size};
    const cudnnStatus_t status = check_algorithm(problem, kForward, algorithm, task);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return submit(task, [=, scaling = scaling_of(alpha, beta)] {
      convolve(g, scaling, static_cast<const float*>(x), static_cast<const float*>(w), static_cast<float*>(y));
    });
  });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t input, const void* x,
                                             const cudnnTensorDescriptor_t output, const void* dy,
                                             const cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             std::size_t size, const void* beta, const cudnnFilterDescriptor_t weights,
                                             void* dw) {
  constexpr const char* kName = "cudnnConvolutionBackwardFilter";
  return cudnn_call(kName, [&] {
    const Problem problem = problem_of(kName, handle, input, weights, convolution, output);
    const Geometry g = problem.geometry;
    const Task task{kName, handle, {x, bytes(g.input)}, {dy, bytes(g.output)}, {dw, bytes(g.weights)}, workspace, size};
    const cudnnStatus_t status = check_algorithm(problem, kBackwardFilter, algorithm, task);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return submit(task, [=, scaling = scaling_of(alpha, beta)] {
      convolve_backward_filter(g, scaling, static_cast<const float*>(x), static_cast<const float*>(dy),
                               static_cast<float*>(dw));
    });
  });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t weights, const void* w,
                                           const cudnnTensorDescriptor_t output, const void* dy,
                                           const cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace, std::size_t size,
                                           const void* beta, const cudnnTensorDescriptor_t input, void* dx) {
  constexpr const char* kName = "cudnnConvolutionBackwardData";
  return cudnn_call(kName, [&] {
    const Problem problem = problem_of(kName, handle, input, weights, convolution, output);
    const Geometry g = problem.geometry;
    const Task task{kName, handle, {w, bytes(g.weights)}, {dy, bytes(g.output)}, {dx, bytes(g.input)}, workspace, size};
    const cudnnStatus_t status = check_algorithm(problem, kBackwardData, algorithm, task);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return submit(task, [=, scaling = scaling_of(alpha, beta)] {
      convolve_backward_data(g, scaling, static_cast<const float*>(w), static_cast<const float*>(dy),
                             static_cast<float*>(dx));
    });
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
