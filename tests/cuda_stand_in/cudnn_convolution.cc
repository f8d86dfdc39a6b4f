// cuDNN's convolutions. Each convolution overwrites its workspace.
#include <cstring>
#include <functional>

#include <fmt/format.h>

#include "tests/cuda_stand_in/cudnn_problem.h"
#include "tests/cuda_stand_in/memory.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

std::size_t bytes(const Extents& extents) {
  return size_of(extents.number) * static_cast<std::size_t>(extents.n) * static_cast<std::size_t>(extents.c) *
         static_cast<std::size_t>(extents.h) * static_cast<std::size_t>(extents.w);
}

struct Operand {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

// A call and its memory.
struct Task {
  const char* function;
  int algorithm;
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
  const auto* candidate = find_candidate(problem, candidates, algorithm);
  if (candidate == nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!candidate->repeatable) violation(fmt::format("{}: an algorithm whose results vary", task.function));
  if (candidate->math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) {
    violation(fmt::format("{}: with the precision of float16", task.function));
  }
  const std::size_t needed = candidate->workspace + copied_bytes(problem, candidate->math);
  return task.workspace_bytes < needed ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_SUCCESS;
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
  const std::string kind =
      fmt::format("{} {} {} {}", task.function, task.first.bytes, task.second.bytes, task.result.bytes);
  const cudaError_t result =
      enqueue_of_library(*stream, make_work(fmt::format("{} {}", task.function, task.algorithm), std::move(uses), run),
                         task.function, kind, task.handle->warm);
  return result == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED_CUDART;
}

Scaling scaling_of(const void* alpha, const void* beta) {
  return {*static_cast<const float*>(alpha), *static_cast<const float*>(beta)};
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t input,
                                      const void* x, const cudnnFilterDescriptor_t weights, const void* w,
                                      const cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace, std::size_t size,
                                      const void* beta, const cudnnTensorDescriptor_t output, void* y) {
  constexpr const char* kName = "cudnnConvolutionForward";
  return cudnn_call(kName, [&] {
    const Problem problem = problem_of(kName, handle, input, weights, convolution, output);
    const Geometry g = problem.geometry;
    const Task task{kName,     algorithm, handle, {x, bytes(g.input)}, {w, bytes(g.weights)}, {y, bytes(g.output)},
                    workspace, size};
    const cudnnStatus_t status = check_algorithm(problem, kForward, algorithm, task);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return submit(task, [=, scaling = scaling_of(alpha, beta)] { convolve(g, scaling, x, w, y); });
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
    const Task task{kName,     algorithm, handle, {x, bytes(g.input)}, {dy, bytes(g.output)}, {dw, bytes(g.weights)},
                    workspace, size};
    const cudnnStatus_t status = check_algorithm(problem, kBackwardFilter, algorithm, task);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return submit(task, [=, scaling = scaling_of(alpha, beta)] { convolve_backward_filter(g, scaling, x, dy, dw); });
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
    const Task task{kName,     algorithm, handle, {w, bytes(g.weights)}, {dy, bytes(g.output)}, {dx, bytes(g.input)},
                    workspace, size};
    const cudnnStatus_t status = check_algorithm(problem, kBackwardData, algorithm, task);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return submit(task, [=, scaling = scaling_of(alpha, beta)] { convolve_backward_data(g, scaling, w, dy, dx); });
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
