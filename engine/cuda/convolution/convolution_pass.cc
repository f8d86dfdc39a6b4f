// These calls belong to cuDNN's older interface, which is deprecated in favor of its graph interface. Only this file
// and descriptors.cc use it.
#include "engine/cuda/convolution/convolution_pass.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/choice/kernel_answers.h"
#include "engine/cuda/choice/kernel_questions.h"
#include "engine/cuda/choice/kernel_trial.h"
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

// Part of recorded choices: "WINOGRAD_NONFUSED, no tensor cores"
std::string name_of(Kind kind, const ConvolutionAlgorithm& algorithm) {
  return fmt::format("{}, {}", name_of(kind, algorithm.number), name_of(algorithm.math));
}

std::string note_of(std::size_t workspace, const std::string& failed) {
  return fmt::format("workspace {} bytes{}{}", workspace, failed.empty() ? "" : "; ", failed);
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
  const std::string question = question_of_pass(spec, precision, name_of(kind));
  KernelAnswers& answers = turn.answers();
  std::string known_answer;  // "": there is none
  KernelChoice choice;
  try {
    ARBALEST_CUDA(cudnnSetConvolutionMathType(convolution_.get(), widest_math(precision)));
    std::vector<ConvolutionAlgorithm> candidates =
        order_of_trial(list(turn.cudnn(), tensors), kind, spec.window, precision);
    if (precision == Precision::kFloat32) {
      for (ConvolutionAlgorithm& candidate : candidates) candidate.math = CUDNN_FMA_MATH;
    }
    std::vector<std::string> names;
    for (const ConvolutionAlgorithm& candidate : candidates) names.push_back(name_of(kind, candidate));
    const std::optional<std::size_t> known = answers.find(question, names);
    if (known.has_value()) {
      known_answer = names[*known];
      const auto place = candidates.begin() + static_cast<std::ptrdiff_t>(*known);
      std::rotate(candidates.begin(), place, place + 1);
      if (answers.must_keep()) candidates.resize(1);
    }
    const bool times = !known.has_value() && answers.selection() == KernelSelection::kTimed && candidates.size() > 1;
    choice = times ? choose_timed(tensors, candidates, turn) : choose(tensors, candidates, times, turn);
  } catch (const Error& error) {
    throw Error(error.kind(),
                fmt::format("trying the {} of a convolution ({}): {}", name_of(kind), to_text(spec), error.what()));
  }
  if (choice.answer.empty()) {
    fail(ErrorKind::kDevice,
         "cuDNN has no repeatable algorithm with a workspace of at most {} MiB for the {} of this convolution: {}{}{}",
         kLargestWorkspace >> 20U, name_of(kind), to_text(spec), choice.note.empty() ? "" : "; ", choice.note);
  }
  if (choice.answer == known_answer) {
    answers.repeat(question);
  } else {
    choice.question = question;
    answers.give(choice);
  }
}

KernelChoice ConvolutionPass::choose_timed(const ConvolutionTensors& tensors,
                                           std::span<const ConvolutionAlgorithm> candidates,
                                           const LibraryQuestions::Turn& turn) {
  try {
    return choose(tensors, candidates, /*times=*/true, turn);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kOutOfMemory) throw;
  }
  turn.trials().end();
  KernelChoice choice = choose(tensors, candidates, /*times=*/false, turn);
  choice.note += "; not timed, because memory for a trial was short";
  return choice;
}

KernelChoice ConvolutionPass::choose(const ConvolutionTensors& tensors,
                                     std::span<const ConvolutionAlgorithm> candidates, bool times,
                                     const LibraryQuestions::Turn& turn) {
  KernelChoice choice;
  ConvolutionAlgorithm best;
  double least = 0.0;
  std::string failed;
  const TrialOperands trial(kind_, tensors);
  for (const ConvolutionAlgorithm& candidate : candidates) {
    cudnnStatus_t status = take(candidate, turn.cudnn(), tensors);
    if (status == CUDNN_STATUS_SUCCESS && workspace_ > kLargestWorkspace) continue;
    const Buffer workspace = allocate_device(status == CUDNN_STATUS_SUCCESS ? workspace_ : 0);
    const Operands operands{trial.first.data(), trial.second.data(), trial.result.data(), workspace.data()};
    if (status == CUDNN_STATUS_SUCCESS) {
      status = enqueue(turn.cudnn(), tensors, operands);
      ARBALEST_CUDA(cudaStreamSynchronize(turn.stream()));  // device errors throw; they are not the algorithm's
    }
    if (status == CUDNN_STATUS_ALLOC_FAILED) ARBALEST_CUDA(status);
    const std::string name = name_of(kind_, candidate);
    if (status != CUDNN_STATUS_SUCCESS) {
      static_cast<void>(cudaGetLastError());  // `status` already reports this error
      failed += fmt::format("{}{} failed ({})", failed.empty() ? "" : "; ", name, cudnnGetErrorString(status));
      continue;
    }
    if (!times) return {.question = "", .answer = name, .note = note_of(workspace_, failed)};
    double microseconds = 0.0;
    try {
      microseconds = time(tensors, operands, turn.trials());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDevice) throw;
      turn.trials().end();
      ARBALEST_CUDA(cudaStreamSynchronize(turn.stream()));  // throws again if the device has failed
      failed += fmt::format("{}{} failed ({})", failed.empty() ? "" : "; ", name, error.what());
      continue;
    }
    choice.candidates.push_back({name, microseconds});
    if (!choice.answer.empty() && microseconds >= least) continue;
    choice.answer = name;
    best = candidate;
    least = microseconds;
  }
  choice.note = failed;
  if (choice.answer.empty()) return choice;
  ARBALEST_CUDA(take(best, turn.cudnn(), tensors));
  choice.note = note_of(workspace_, failed);
  return choice;
}

double ConvolutionPass::time(const ConvolutionTensors& tensors, const Operands& operands, TrialStream& trials) const {
  return trials.run(/*replicas=*/1, [&](CudaStream& stream) {
    const auto submit = [&] {
      stream.submit_to_libraries("kernel trial",
                                 [&](const StreamContext& context) { run(context, tensors, operands); });
    };
    return time_work(submit, ReplicaMemory{}, stream);
  });
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

// The workspace that cuDNN lists may be for another math type.
cudnnStatus_t ConvolutionPass::take(const ConvolutionAlgorithm& algorithm, cudnnHandle_t cudnn,
                                    const ConvolutionTensors& tensors) {
  ARBALEST_CUDA(cudnnSetConvolutionMathType(convolution_.get(), algorithm.math));
  algorithm_ = algorithm.number;
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
