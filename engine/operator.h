// An operator: a layer's arithmetic, prepared once for one device, batch size and thread count, and enqueued many
// times.
#pragma once

#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "engine/base/layout.h"
#include "engine/base/precision.h"
#include "engine/ops/accuracy.h"
#include "engine/ops/activation.h"
#include "engine/ops/add.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/concat.h"
#include "engine/ops/conv2d.h"
#include "engine/ops/dense.h"
#include "engine/ops/dropout.h"
#include "engine/ops/embedding.h"
#include "engine/ops/exchange.h"
#include "engine/ops/flatten.h"
#include "engine/ops/inner_product.h"
#include "engine/ops/layer_norm.h"
#include "engine/ops/local_response_norm.h"
#include "engine/ops/padded_shortcut.h"
#include "engine/ops/pool2d.h"
#include "engine/ops/prelu.h"
#include "engine/ops/softmax.h"
#include "engine/ops/softmax_cross_entropy.h"
#include "engine/ops/squared_error.h"
#include "engine/passes/step_parameters.h"

namespace arbalest::engine {

class Stream;

// All operators, by the struct with their options. `OF` is applied to each; the results are separated by commas, as in
// a list of types, or of functions to declare.
#define ARBALEST_OPERATORS(OF)                                                                                        \
  OF(Conv2dSpec), OF(DenseSpec), OF(Pool2dSpec), OF(ActivationSpec), OF(PReluSpec), OF(DropoutSpec), OF(FlattenSpec), \
      OF(BatchNormSpec), OF(LayerNormSpec), OF(LocalResponseNormSpec), OF(AddSpec), OF(ConcatSpec),                   \
      OF(PaddedShortcutSpec), OF(SoftmaxSpec), OF(SoftmaxCrossEntropySpec), OF(AccuracySpec), OF(EmbeddingSpec),      \
      OF(InnerProductSpec), OF(SquaredErrorSpec), OF(ExchangeSpec)

#define ARBALEST_SPEC(Spec) Spec
using OperatorSpec = std::variant<ARBALEST_OPERATORS(ARBALEST_SPEC)>;
#undef ARBALEST_SPEC

enum class OperatorMode { kTraining, kInference };

struct PrepareOptions {
  OperatorMode mode = OperatorMode::kTraining;
  int threads = 1;  // CPU: thread count of the stream that will run the operator
  // False for layers that read only the mini-batch: backward then computes no input gradient.
  bool input_gradient = true;
  // Per input: true if it needs no gradient although another input does. Empty: no such input.
  std::vector<bool> no_gradient = {};
  // Fixed layouts in which to read the parameters; empty: the operator chooses.
  std::vector<Layout> parameters = {};
  int replicas = 1;  // GPU: of the team for which the operator will mostly be enqueued; tells which kernels are fastest
  bool adds_to_loss = false;                  // for a loss: adds to the result of an earlier loss of the same step
  Precision precision = Precision::kFloat32;  // for convolutions and dense layers; others compute in their input's type

  // Whether backward computes the gradient of input k.
  bool wants_gradient(std::size_t k) const {
    return mode == OperatorMode::kTraining && input_gradient && (k >= no_gradient.size() || !no_gradient[k]);
  }
};

// Facts about an operator that the memory plan needs. A tensor's gradient has the layout of the tensor.
struct OperatorTraits {
  Layout output;
  std::vector<Layout> parameters;  // in the order of the spec; float32, as are their gradients
  // The operator reads its weights (parameters[0], not the bias) rounded to bfloat16, in the same order of elements.
  bool low_precision_weights = false;
  std::size_t saved_bytes = 0;    // written by forward, read by backward; 64-byte aligned
  std::size_t scratch_bytes = 0;  // free between tasks; the larger need of forward and backward
  bool backward_reads_inputs = false;
  bool backward_reads_first_input_only = false;  // restricts backward_reads_inputs to input 0
  bool backward_reads_output = false;
  bool in_place_forward = false;  // the output may share the buffer of input 0
  // The gradient of input 0 may share the buffer of the output's gradient.
  bool in_place_backward = false;
  std::size_t in_place_backward_input = 0;  // the input of in_place_backward, if not input 0
  // The in-place rules apply to every input whose layout equals the output's, and to no other. The gradients of these
  // inputs are equal: they may share one buffer, which backward writes once.
  bool symmetric_inputs = false;
  // The gradient of an input that may share the output gradient's buffer equals that gradient. In place, backward then
  // writes nothing, so other tasks may still read the buffer.
  bool passes_gradient = false;
  bool overwrites_output_gradient = false;  // backward destroys the gradient of its output
  // A loss, whose forward also writes the gradient of input 0 (ForwardOperands::input_gradient). Its backward does
  // nothing.
  bool forward_writes_gradient = false;
  // A library computes the replicas of a team one after the other. False: one launch computes all of them.
  bool runs_replicas_in_turn = false;
  // Backward can add the gradient of input 0 to another tensor of its layout (BackwardOperands::addend).
  bool adds_to_gradient = false;
};

// Addresses for one use. The spans are read while enqueuing; the buffers are read when the stream runs the task.
struct ForwardOperands {
  std::span<const void* const> inputs;
  void* output = nullptr;
  std::span<const void* const> parameters;
  // Training: gradients of running statistics are overwritten (ops/batch_norm.h); the others are not touched.
  std::span<void* const> parameter_gradients;
  void* input_gradient = nullptr;  // if forward_writes_gradient: of input 0
  void* saved = nullptr;
  void* scratch = nullptr;
  const StepParameters* step = nullptr;  // fixed address; the content is read at run time
};

struct BackwardOperands {
  std::span<const void* const> inputs;  // valid if backward_reads_inputs; labels are always valid
  const void* output = nullptr;         // valid if backward_reads_output
  // Null for a loss. Other tasks may still read this buffer. Backward writes it only in place (an input's gradient has
  // the same address), or if traits().overwrites_output_gradient.
  void* output_gradient = nullptr;
  std::span<void* const> input_gradients;  // overwritten; null if not wanted
  // If adds_to_gradient: the gradient of input 0 becomes addend + gradient. Null: nothing is added. It may be the
  // gradient's own buffer, but not that of the output's gradient if it is written.
  const void* addend = nullptr;
  std::span<const void* const> parameters;
  // Overwritten, padding zero. Gradients of running statistics were written by forward and are not touched.
  std::span<void* const> parameter_gradients;
  const void* saved = nullptr;
  void* scratch = nullptr;
  const StepParameters* step = nullptr;
};

class Operator {
 public:
  virtual ~Operator() = default;

  const OperatorTraits& traits() const noexcept { return traits_; }

  // Stream ordering: both enqueue on `stream` (or record, while it is recording) and return. The operator and all
  // buffers must live until the stream has passed the task. `label` names the layer in errors and traces and must live
  // as long as the stream's work. backward() requires an operator prepared with kTraining.
  virtual void forward(Stream& stream, const char* label, const ForwardOperands& operands) const = 0;
  virtual void backward(Stream& stream, const char* label, const BackwardOperands& operands) const = 0;

 protected:
  OperatorTraits traits_;
};

}  // namespace arbalest::engine
