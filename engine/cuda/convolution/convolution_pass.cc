// These calls belong to cuDNN's older interface, which is deprecated in favor of its graph interface. Only this file
// and descriptors.cc use it.
#include "engine/cuda/convolution/convolution_pass.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/choice/kernel_questions.h"
#include "engine/cuda/runtime/memory.h"

namespace arbalest::engine::cuda {

namespace {

using Kind = ConvolutionKind;

constexpr std::size_t kLargestWorkspace = std::size_t{256} << 20U;
constexpr int kMostResults = 16;  // more than the number of algorithms, because some are listed with several math types
constexpr float kOne = 1.0F;      // alpha and beta of every call: the result overwrites the target
constexpr float kZero = 0.0F;

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kForward: return "output";
    case Kind::kWeightGradient: return "weight gradient";
    case Kind::kInputGradient: break;
  }
  return "input gradient";
}

const char* name_of(cudnnMathType_t math) {
  switch (math) {
    case CUDNN_FMA_MATH: return "no tensor cores";
    case CUDNN_TENSOR_OP_MATH: return "tensor cores";
    case CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION: return "tensor cores in float16";
    case CUDNN_DEFAULT_MATH: break;
  }
  return "tensor cores if cuDNN chooses them";
}

// The math type with which cuDNN lists algorithms.
cudnnMathType_t widest_math(Precision precision) {
  return precision == Precision::kFloat32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;
}

std::size_t bytes_of(const Shape& shape, DType dtype) {
  return aligned(static_cast<std::size_t>(shape.elements()) * size_of(dtype));
}

// The trial's input and output tensors.
struct TrialOperands {
  TrialOperands(Kind kind, const ConvolutionTensors& tensors)
      : first(allocate_device(kind == Kind::kInputGradient ? tensors.weights_bytes : tensors.input_bytes)),
        second(allocate_device(kind == Kind::kForward ? tensors.weights_bytes : tensors.output_bytes)),
        result(allocate_device(kind == Kind::kForward          ? tensors.output_bytes
                               : kind == Kind::kWeightGradient ? tensors.weights_bytes
                                                               : tensors.input_bytes)) {}

  Buffer first;
  Buffer second;
  Buffer result;
};

}  // namespace

ConvolutionTensors::ConvolutionTensors(const Shape& input_shape, const Shape& weights_shape, const Shape& output_shape,
                                       DType dtype, Order order)
    : input(describe_images(input_shape, dtype, order)),
      weights(describe_filters(weights_shape, dtype, order)),
      output(describe_images(output_shape, dtype, order)),
      input_bytes(bytes_of(input_shape, dtype)),
      weights_bytes(bytes_of(weights_shape, dtype)),
      output_bytes(bytes_of(output_shape, dtype)) {}

ConvolutionPass::ConvolutionPass(Kind kind, const ConvolutionTensors& tensors, const Conv2dSpec& spec,
                                 Precision precision, const LibraryQuestions::Turn& turn)
    : kind_(kind), convolution_(describe_convolution(spec.window, spec.groups)) {
  ARBALEST_CUDA(cudnnSetConvolutionMathType(convolution_.get(), widest_math(precision)));
  std::string failed;
  try {
    const TrialOperands trial(kind, tensors);
    for (const ConvolutionAlgorithm& candidate :
         order_of_trial(list(turn.cudnn(), tensors), kind, spec.window, precision)) {
      const cudnnMathType_t math = precision == Precision::kFloat32 ? CUDNN_FMA_MATH : candidate.math;
      ARBALEST_CUDA(cudnnSetConvolutionMathType(convolution_.get(), math));
      algorithm_ = candidate.number;
      cudnnStatus_t status = find_workspace(turn.cudnn(), tensors);
      if (status == CUDNN_STATUS_SUCCESS && workspace_ > kLargestWorkspace) continue;
      if (status == CUDNN_STATUS_SUCCESS) {
        const Buffer workspace = allocate_device(workspace_);
        status = enqueue(turn.cudnn(), tensors,
                         {trial.first.data(), trial.second.data(), trial.result.data(), workspace.data()});
        ARBALEST_CUDA(cudaStreamSynchronize(turn.stream()));  // device errors throw; they are not the algorithm's
      }
      if (status == CUDNN_STATUS_SUCCESS) {
        turn.note_choice(
            {.question = fmt::format("{}: {}", to_text(spec), name_of(kind)),
             .answer = fmt::format("{}, {}, workspace {} bytes", name_of(kind, algorithm_), name_of(math), workspace_),
             .note = failed});
        return;
      }
      if (status == CUDNN_STATUS_ALLOC_FAILED) ARBALEST_CUDA(status);
      static_cast<void>(cudaGetLastError());  // `status` already reports this error
      failed += fmt::format("{}{} with {} failed ({})", failed.empty() ? "" : "; ", name_of(kind, algorithm_),
                            name_of(math), cudnnGetErrorString(status));
    }
  } catch (const Error& error) {
    throw Error(error.kind(),
                fmt::format("trying the {} of a convolution ({}): {}", name_of(kind), to_text(spec), error.what()));
  }
  fail(ErrorKind::kDevice,
       "cuDNN has no repeatable algorithm with a workspace of at most {} MiB for the {} of this convolution: {}{}{}",
       kLargestWorkspace >> 20U, name_of(kind), to_text(spec), failed.empty() ? "" : "; ", failed);
}

std::vector<ConvolutionAlgorithm> ConvolutionPass::list(cudnnHandle_t cudnn, const ConvolutionTensors& tensors) const {
  const cudnnTensorDescriptor_t x = tensors.input.get(), y = tensors.output.get();
  const cudnnFilterDescriptor_t w = tensors.weights.get();
  const cudnnConvolutionDescriptor_t of = convolution_.get();
  std::vector<ConvolutionAlgorithm> candidates;
  const auto collect = [&](auto result, const auto& ask) {
    std::array<decltype(result), kMostResults> results{};
    int found = 0;
    const cudnnStatus_t listed = ask(&found, results.data());
    if (CUDNN_STATUS_CATEGORY(listed) == CUDNN_STATUS_NOT_SUPPORTED) return;  // there is no algorithm
    check(listed, "asking cuDNN for convolution algorithms");
    for (const auto& entry : std::span(results).first(static_cast<std::size_t>(found))) {
      if (entry.status != CUDNN_STATUS_SUCCESS || entry.determinism != CUDNN_DETERMINISTIC) continue;
      candidates.push_back({static_cast<int>(entry.algo), entry.mathType});
    }
  };
  switch (kind_) {
    case Kind::kForward:
      collect(cudnnConvolutionFwdAlgoPerf_t{}, [&](int* found, auto* results) {
        return cudnnGetConvolutionForwardAlgorithm_v7(cudnn, x, w, of, y, kMostResults, found, results);
      });
      break;
    case Kind::kWeightGradient:
      collect(cudnnConvolutionBwdFilterAlgoPerf_t{}, [&](int* found, auto* results) {
        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnn, x, y, of, w, kMostResults, found, results);
      });
      break;
    case Kind::kInputGradient:
      collect(cudnnConvolutionBwdDataAlgoPerf_t{}, [&](int* found, auto* results) {
        return cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnn, w, y, of, x, kMostResults, found, results);
      });
      break;
  }
  return candidates;
}

// Finds the workspace size for the math type in the descriptor. The size that cuDNN lists may be for another math type.
cudnnStatus_t ConvolutionPass::find_workspace(cudnnHandle_t cudnn, const ConvolutionTensors& tensors) {
  const cudnnTensorDescriptor_t x = tensors.input.get(), y = tensors.output.get();
  const cudnnFilterDescriptor_t w = tensors.weights.get();
  const cudnnConvolutionDescriptor_t of = convolution_.get();
  switch (kind_) {
    case Kind::kForward:
      return cudnnGetConvolutionForwardWorkspaceSize(cudnn, x, w, of, y,
                                                     static_cast<cudnnConvolutionFwdAlgo_t>(algorithm_), &workspace_);
    case Kind::kWeightGradient:
      return cudnnGetConvolutionBackwardFilterWorkspaceSize(
          cudnn, x, y, of, w, static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm_), &workspace_);
    case Kind::kInputGradient: break;
  }
  return cudnnGetConvolutionBackwardDataWorkspaceSize(
      cudnn, w, y, of, x, static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm_), &workspace_);
}

cudnnStatus_t ConvolutionPass::enqueue(cudnnHandle_t cudnn, const ConvolutionTensors& tensors,
                                       const Operands& on) const {
  const cudnnTensorDescriptor_t x = tensors.input.get(), y = tensors.output.get();
  const cudnnFilterDescriptor_t w = tensors.weights.get();
  const cudnnConvolutionDescriptor_t of = convolution_.get();
  switch (kind_) {
    case Kind::kForward:
      return cudnnConvolutionForward(cudnn, &kOne, x, on.first, w, on.second, of,
                                     static_cast<cudnnConvolutionFwdAlgo_t>(algorithm_), on.workspace, workspace_,
                                     &kZero, y, on.result);
    case Kind::kWeightGradient:
      return cudnnConvolutionBackwardFilter(cudnn, &kOne, x, on.first, y, on.second, of,
                                            static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm_), on.workspace,
                                            workspace_, &kZero, w, on.result);
    case Kind::kInputGradient: break;
  }
  return cudnnConvolutionBackwardData(cudnn, &kOne, w, on.first, y, on.second, of,
                                      static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm_), on.workspace, workspace_,
                                      &kZero, x, on.result);
}

void ConvolutionPass::run(const StreamContext& context, const ConvolutionTensors& tensors,
                          const Operands& operands) const {
  const std::array<const char*, 3> calls = {"cudnnConvolutionForward", "cudnnConvolutionBackwardFilter",
                                            "cudnnConvolutionBackwardData"};
  for_each_replica(context.stream, [&](const auto& place) {
    const Operands own{place(operands.first), place(operands.second), place(operands.result),
                       place(operands.workspace)};
    check(enqueue(context.cudnn, tensors, own), calls[static_cast<std::size_t>(kind_)]);
  });
}

}  // namespace arbalest::engine::cuda
