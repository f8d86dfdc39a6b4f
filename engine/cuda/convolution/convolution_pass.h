// One pass of a convolution by cuDNN: its output, the gradient of its weights, or the gradient of its input.
#pragma once

#include <cstddef>
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

  // Tries cuDNN's algorithms in the order of order_of_trial(). Takes the first that is deterministic, computes in
  // `precision`, needs no large workspace, and passes a trial on temporary memory. Blocks the host. Throws kOutOfMemory
  // if there is no memory for the trial: another algorithm would round differently, and a job's results must not depend
  // on how much memory is free. Throws kDevice if no algorithm is left. Records the choice and all failed algorithms
  // with `turn`.
  ConvolutionPass(Kind kind, const ConvolutionTensors& tensors, const Conv2dSpec& spec, Precision precision,
                  const LibraryQuestions::Turn& turn);

  std::size_t workspace_bytes() const noexcept { return workspace_; }

  // Enqueues the pass of each replica, one after the other.
  void run(const StreamContext& context, const ConvolutionTensors& tensors, const Operands& operands) const;

 private:
  cudnnStatus_t enqueue(cudnnHandle_t cudnn, const ConvolutionTensors& tensors, const Operands& operands) const;
  cudnnStatus_t find_workspace(cudnnHandle_t cudnn, const ConvolutionTensors& tensors);
  std::vector<ConvolutionAlgorithm> list(cudnnHandle_t cudnn, const ConvolutionTensors& tensors) const;

  Kind kind_;
  ConvolutionDescriptor convolution_;  // with the math type of the algorithm
  int algorithm_ = 0;                  // value of the cuDNN enumeration for kind_
  std::size_t workspace_ = 0;          // bytes
};

}  // namespace arbalest::engine::cuda
