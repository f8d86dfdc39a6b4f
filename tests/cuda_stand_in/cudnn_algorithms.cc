// cuDNN's lists of algorithms, fastest first, and their workspaces.
#include "tests/cuda_stand_in/cudnn_problem.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

template <typename Candidates, typename Result>
cudnnStatus_t list(const Problem& problem, const Candidates& candidates, int wanted, int* found, Result* results) {
  if (problem.status != CUDNN_STATUS_SUCCESS) return problem.status;
  *found = 0;
  for (const auto& candidate : candidates) {
    if (*found == wanted) break;
    const bool halves = problem.geometry.input.number == Number::kBFloat16;
    if (halves && candidate.types == Types::kFloat32) continue;
    Result& result = results[(*found)++];
    result = {};
    result.algo = candidate.algorithm;
    result.status = CUDNN_STATUS_SUCCESS;
    result.time = static_cast<float>(*found);
    result.memory = candidate.workspace + copied_bytes(problem, candidate.math);
    result.determinism = candidate.repeatable ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
    result.mathType = candidate.math;
  }
  return CUDNN_STATUS_SUCCESS;
}

template <typename Candidates, typename Algorithm>
cudnnStatus_t workspace_size(const Problem& problem, const Candidates& candidates, Algorithm algorithm,
                             std::size_t* size) {
  if (problem.status != CUDNN_STATUS_SUCCESS) return problem.status;
  const auto* candidate = find_candidate(problem, candidates, algorithm);
  if (candidate == nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
  *size = candidate->workspace + copied_bytes(problem, candidate->math);
  return CUDNN_STATUS_SUCCESS;
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

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
