// One pass of a convolution by cuDNN: its output, the gradient of its weights, or the gradient of its input.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/base/precision.h"
#include "engine/cuda/convolution/algorithms.h"
#include "engine/cuda/device/library_questions.h"
#include "engine/cuda/kernels/descriptors.h"
#include "engine/cuda/runtime/stream.h"
#include "engine/ops/conv2d.h"

namespace arbalest::engine::cuda {

// The tensors of all passes: one type and one order.
struct ConvolutionTensors {
  ConvolutionTensors(const Shape& input_shape, const Shape& weights_shape, const Shape& output_shape, DType dtype,
                     Order order);

  TensorDescriptor input;
  FilterDescriptor weights;
  TensorDescriptor output;
  std::size_t input_bytes;
  std::size_t weights_bytes;
  std::size_t output_bytes;
};

class ConvolutionPass {
 public:
  using Kind = ConvolutionKind;

  // Device memory. Each kind reads two tensors and writes a third. Forward: input, weights -> output. Weight gradient:
  // input, output's gradient -> weights' gradient. Input gradient: weights, output's gradient -> input's gradient.
  struct Operands {
    const void* first = nullptr;
    const void* second = nullptr;
    void* result = nullptr;
    void* workspace = nullptr;  // [workspace_bytes()]
  };

  // Tries cuDNN's algorithms in the order of order_of_trial(). Those are candidates that are deterministic, compute in
  // `precision`, need no large workspace, and pass a trial on temporary memory. Takes the recorded one; else, for
  // kTimed, the fastest (kernel_trial.h), for one replica; else the first. Blocks the host. Throws kOutOfMemory if
  // there is no memory for the trial of the first: another algorithm would round differently. If only timing lacks
  // memory, the first is taken, as KernelChooser does. Throws kDevice if no algorithm is left, or not the recorded one.
  // Gives the answer, with all failed algorithms, to turn.answers().
  ConvolutionPass(Kind kind, const ConvolutionTensors& tensors, const Conv2dSpec& spec, Precision precision,
                  const LibraryQuestions::Turn& turn);

  std::size_t workspace_bytes() const noexcept { return workspace_; }

  // Enqueues the pass of each replica, one after the other.
  void run(const StreamContext& context, const ConvolutionTensors& tensors, const Operands& operands) const;

 private:
  // Takes the fastest candidate, or without `times` the first, that passes a trial. Returns the choice without its
  // question; without an answer if all fail.
  KernelChoice choose(const ConvolutionTensors& tensors, std::span<const ConvolutionAlgorithm> candidates, bool times,
                      const LibraryQuestions::Turn& turn);
  // As choose; if memory is short for timing only, takes the first.
  KernelChoice choose_timed(const ConvolutionTensors& tensors, std::span<const ConvolutionAlgorithm> candidates,
                            const LibraryQuestions::Turn& turn);
  // From now on the pass is computed so. Finds the workspace for it.
  cudnnStatus_t take(const ConvolutionAlgorithm& algorithm, cudnnHandle_t cudnn, const ConvolutionTensors& tensors);
  double time(const ConvolutionTensors& tensors, const Operands& operands, TrialStream& trials) const;
  cudnnStatus_t enqueue(cudnnHandle_t cudnn, const ConvolutionTensors& tensors, const Operands& operands) const;
  std::vector<ConvolutionAlgorithm> list(cudnnHandle_t cudnn, const ConvolutionTensors& tensors) const;

  Kind kind_;
  ConvolutionDescriptor convolution_;  // with the math type of the algorithm
  int algorithm_ = 0;                  // value of the cuDNN enumeration for kind_
  std::size_t workspace_ = 0;          // bytes
};

}  // namespace arbalest::engine::cuda
