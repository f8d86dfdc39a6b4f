// A layer's arithmetic, prepared for one device, batch size and thread count. Prepared once, enqueued many times.
#pragma once

#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "engine/layout.h"
#include "engine/ops/accuracy.h"
#include "engine/ops/activation.h"
#include "engine/ops/add.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/concat.h"
#include "engine/ops/conv2d.h"
#include "engine/ops/dense.h"
#include "engine/ops/dropout.h"
#include "engine/ops/embedding.h"
#include "engine/ops/flatten.h"
#include "engine/ops/inner_product.h"
#include "engine/ops/local_response_norm.h"
#include "engine/ops/padded_shortcut.h"
#include "engine/ops/pool2d.h"
#include "engine/ops/softmax.h"
#include "engine/ops/softmax_cross_entropy.h"
#include "engine/ops/squared_error.h"
#include "engine/ops/step_parameters.h"
#include "engine/precision.h"

namespace arbalest::engine {

class Stream;

// Every backend has one `prepare` per alternative; a missing one does not compile.
using OperatorSpec =
    std::variant<Conv2dSpec, DenseSpec, Pool2dSpec, ActivationSpec, DropoutSpec, FlattenSpec, BatchNormSpec,
                 LocalResponseNormSpec, AddSpec, ConcatSpec, PaddedShortcutSpec, SoftmaxSpec, SoftmaxCrossEntropySpec,
                 AccuracySpec, EmbeddingSpec, InnerProductSpec, SquaredErrorSpec>;

enum class OperatorMode { kTraining, kInference };

struct PrepareOptions {
  OperatorMode mode = OperatorMode::kTraining;
  int threads = 1;                     // CPU: the thread count of the stream that will run it
  bool input_gradient = true;          // false for layers that read only the batch: backward computes no input gradient
  std::vector<bool> no_gradient = {};  // by input: gets none though another does; empty: no such input
  std::vector<Layout> parameters = {};        // fixed layouts to read the parameters in; empty: the operator chooses
  bool adds_to_loss = false;                  // of a loss: to what a loss before it in the same step has written
  Precision precision = Precision::kFloat32;  // of convolutions and dense layers; others compute in their input's type

  // Whether backward computes the gradient of input k.
  bool wants_gradient(std::size_t k) const {
    return mode == OperatorMode::kTraining && input_gradient && (k >= no_gradient.size() || !no_gradient[k]);
  }
};

// What the plan needs to know. A tensor's gradient has the layout of the tensor.
struct OperatorTraits {
  Layout output;
  std::vector<Layout> parameters;  // in the order of the spec; float32, and so are their gradients
  // The operator reads its weights (parameters[0], not the bias) rounded to bfloat16, in the same order of elements.
  bool low_precision_weights = false;
  std::size_t saved_bytes = 0;    // written by forward, read by backward; 64-byte aligned
  std::size_t scratch_bytes = 0;  // free between tasks; the larger of forward's and backward's need
  bool backward_reads_inputs = false;
  bool backward_reads_first_input_only = false;  // of them
  bool backward_reads_output = false;
  bool in_place_forward = false;            // output may be the buffer of input 0
  bool in_place_backward = false;           // gradient of input 0 may be the buffer of the output's gradient
  std::size_t in_place_backward_input = 0;  // or that of another one
  // What is said of input 0 holds of every input that lies as the output, and of no other. The gradients of all of them
  // are equal: they may be one buffer, to which backward writes once.
  bool symmetric_inputs = false;
  // The gradient of an input that may be the output's in place *is* the output's: there, backward writes nothing, so
  // that others may still read it.
  bool passes_gradient = false;
  bool overwrites_output_gradient = false;  // backward leaves something else there
};

// Addresses of one use. The spans are read while enqueuing, the buffers when the stream gets there.
struct ForwardOperands {
  std::span<const void* const> inputs;
  void* output = nullptr;
  std::span<const void* const> parameters;
  // Training: those of running statistics are overwritten (ops/batch_norm.h), the others left alone.
  std::span<void* const> parameter_gradients;
  void* saved = nullptr;
  void* scratch = nullptr;
  const StepParameters* step = nullptr;  // fixed address; its content is read at run time
};

struct BackwardOperands {
  std::span<const void* const> inputs;  // valid if backward_reads_inputs; labels always
  const void* output = nullptr;         // valid if backward_reads_output
  // Null for a loss. Others may still read it: written only in place (an input's gradient is at the same address), or
  // where the traits say so.
  void* output_gradient = nullptr;
  std::span<void* const> input_gradients;  // overwritten; null where not wanted
  std::span<const void* const> parameters;
  std::span<void* const> parameter_gradients;  // overwritten, padding zero; forward has written the statistics'
  const void* saved = nullptr;
  void* scratch = nullptr;
  const StepParameters* step = nullptr;
};

class Operator {
 public:
  virtual ~Operator() = default;

  const OperatorTraits& traits() const noexcept { return traits_; }

  // Stream ordering: both enqueue on `stream` (or record, while it is recording) and return; the operator and all
  // buffers must live until the stream has passed them. `label` names the layer in errors and traces and must live as
  // long as the stream's work. backward is only there after kTraining.
  virtual void forward(Stream& stream, const char* label, const ForwardOperands& operands) const = 0;
  virtual void backward(Stream& stream, const char* label, const BackwardOperands& operands) const = 0;

 protected:
  OperatorTraits traits_;
};

}  // namespace arbalest::engine
