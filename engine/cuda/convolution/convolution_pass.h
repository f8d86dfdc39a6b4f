// One pass of a convolution by cuDNN: its output, the gradient of its weights, or the gradient of its input.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/cuda/convolution/descriptors.h"
#include "engine/cuda/device/library_questions.h"
#include "engine/ops/conv2d.h"
#include "engine/precision.h"

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
  enum class Kind { kForward, kWeightGradient, kInputGradient };

  // Device memory, in this order for each kind: input, weights -> output; input, output's gradient -> weights'
  // gradient; weights, output's gradient -> input's gradient.
  struct Operands {
    const void* first = nullptr;
    const void* second = nullptr;
    void* result = nullptr;
    void* workspace = nullptr;  // [workspace_bytes()]
  };

  // Takes the first of cuDNN's algorithms, which are sorted by expected time, that repeats its results, computes with
  // what `precision` promises, needs no large workspace, and passes a trial on memory of its own. Blocks the host.
  // Throws kOutOfMemory if the trial finds no memory: another algorithm would round differently, and a job's results
  // must not depend on what else lies in memory. Throws kDevice if no algorithm is left. Notes the choice, and what
  // failed before it, with the turn.
  ConvolutionPass(Kind kind, const ConvolutionTensors& tensors, const Conv2dSpec& spec, Precision precision,
                  const LibraryQuestions::Turn& turn);

  std::size_t workspace_bytes() const noexcept { return workspace_; }

  // Enqueues on the handle's stream.
  void run(cudnnHandle_t cudnn, const ConvolutionTensors& tensors, const Operands& operands) const;

 private:
  struct Candidate;

  cudnnStatus_t enqueue(cudnnHandle_t cudnn, const ConvolutionTensors& tensors, const Operands& operands) const;
  cudnnStatus_t find_workspace(cudnnHandle_t cudnn, const ConvolutionTensors& tensors);
  std::vector<Candidate> list(cudnnHandle_t cudnn, const ConvolutionTensors& tensors) const;

  Kind kind_;
  ConvolutionDescriptor convolution_;  // with the math type of the algorithm
  int algorithm_ = 0;                  // of the kind's enumeration
  std::size_t workspace_ = 0;          // bytes
};

}  // namespace arbalest::engine::cuda
