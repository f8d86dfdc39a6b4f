// A graph prepared for one device, batch size and thread count: operators, parameter layout, and the place of every
// tensor in an arena. A plan is immutable. The learners of one device with the same batch
// size and thread count share it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataflow/autodiff.h"
#include "dataflow/gradient_parts.h"
#include "dataflow/graph.h"
#include "dataflow/input/input_tensor.h"
#include "dataflow/parameter_layout.h"
#include "engine/base/bfloat16.h"
#include "engine/device.h"

namespace arbalest::dataflow {

struct PlanOptions {
  std::int64_t batch = 1;  // examples of a mini-batch
  int threads = 1;         // CPU: thread count of the streams that will run the plan
  int replicas = 1;        // GPU: of the teams that will mostly run the plan (engine::PrepareOptions)
  engine::OperatorMode mode = engine::OperatorMode::kTraining;
  engine::Precision precision = engine::Precision::kFloat32;
  const ParameterLayout* parameters = nullptr;    // layouts of parameters to use; null: the operators choose
  std::vector<ParameterKind> without_decay = {};  // these kinds get no weight decay, whatever their decay_multiplier
  // Inference: name of a layer whose output the caller reads after forward() (Plan::output); "": none.
  std::string output = {};
};

// Addresses of one learner's buffers. All must outlive the work enqueued with them.
struct PlanBuffers {
  float* weights = nullptr;    // [parameters().elements()]
  float* gradient = nullptr;   // [parameters().elements()]; training only
  std::byte* arena = nullptr;  // [arena_bytes()]
  const engine::StepParameters* step = nullptr;
  engine::StepResult* result = nullptr;
  // The weights rounded to BF16, at the same offsets; null unless reads_low_precision_weights().
  const engine::BFloat16* low_precision_weights = nullptr;
};

class Plan {
 public:
  // Throws engine::Error naming the layer that the device cannot run, and kInternal if PlanOptions::output is not the
  // name of a layer with an output that runs.
  Plan(const Graph& graph, engine::Device& device, const PlanOptions& options);

  // The graph that runs: the given graph after fusion.
  const Graph& graph() const noexcept { return graph_; }
  const ParameterLayout& parameters() const noexcept { return parameters_; }
  bool reads_low_precision_weights() const;
  // Examples of a mini-batch.
  std::int64_t batch() const noexcept { return layouts_.front().shape()[0]; }

  std::size_t arena_bytes() const noexcept { return arena_bytes_; }
  // Baseline for arena_bytes(): one buffer for each layer's output and one for its gradient. The arena also holds the
  // mini-batch, saved values and scratch memory; they are not counted here.
  std::size_t bytes_without_reuse() const noexcept { return bytes_without_reuse_; }
  // Bytes of a tensor in the device's layout.
  std::size_t tensor_bytes(int tensor) const { return layouts_[static_cast<std::size_t>(tensor)].bytes(); }

  // The layers of which a library computes one replica of a team after the other (engine::OperatorTraits).
  std::vector<std::string> layers_in_turn() const;

  // The place of a tensor of the mini-batch, [batch, ...], which the caller writes densely before forward().
  struct Input {
    std::string name;
    engine::Layout layout;
    std::size_t offset = 0;  // in the arena, in bytes
  };
  // The plan's inputs are in the order of graph().input().
  const std::vector<Input>& inputs() const noexcept { return inputs_; }
  // The address of an input's elements. T is float or std::int32_t. Throws kInternal if no input has the name, or if
  // its elements are of another type.
  template <typename T>
  T* input(std::string_view name, std::byte* arena) const {
    return reinterpret_cast<T*>(arena + input_offset(name, dtype_of<T>()));
  }

  // The place of the output that PlanOptions::output names. It holds the output after forward(), until the arena is
  // written again.
  struct Output {
    engine::Layout layout;
    std::size_t offset = 0;  // in the arena, in bytes
  };
  const std::optional<Output>& output() const noexcept { return output_; }

  // Both enqueue (or record) on `stream` and return; the stream orders them. forward() writes result->sums for the
  // metrics of graph() (the loss in training is the weighted sum of all losses), and in training the statistics' part
  // of the gradient (engine/ops/batch_norm.h). backward() overwrites the rest of the gradient. It must follow a
  // forward() with the same buffers.
  void forward(engine::Stream& stream, const PlanBuffers& buffers) const;
  void backward(engine::Stream& stream, const PlanBuffers& buffers) const;

  // The backward pass in parts of about `bytes` bytes of gradient, the first of about an eighth (gradient_parts.h); 0:
  // one part. Running backward() on all parts in order equals the backward() of the whole pass.
  std::vector<GradientPart> gradient_parts(std::int64_t bytes) const;
  void backward(engine::Stream& stream, const PlanBuffers& buffers, const GradientPart& part) const;

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  // NodeGradients as arena offsets, or kNowhere.
  struct InputGradientOffsets {
    std::size_t written = kNowhere;
    std::size_t before = kNowhere;
    std::size_t sum = kNowhere;
  };
  struct GradientOffsets {
    std::size_t output = kNowhere;
    std::size_t copied_from = kNowhere;
    std::vector<InputGradientOffsets> inputs;
  };

  struct Step {
    std::unique_ptr<engine::Operator> op;
    std::string backward_label;
    std::string sum_label;
    std::size_t first_parameter = 0;  // in parameters_.entries()
    bool runs_forward = false;
    bool runs_backward = false;
    std::size_t saved_offset = kNowhere;
    std::size_t forward_scratch_offset = kNowhere;
    std::size_t backward_scratch_offset = kNowhere;
    GradientOffsets gradients;  // if it runs backward
  };

  void prepare_operators(engine::Device& device, const PlanOptions& options, const std::vector<bool>& forward,
                         const Backward& backward);
  void place_buffers(const std::vector<bool>& forward, const Backward& backward, const std::string& output);
  std::size_t input_offset(std::string_view name, engine::DType dtype) const;
  void* forward_output(const Graph::Node& node, const PlanBuffers& buffers) const;
  std::vector<const void*> input_addresses(const Graph::Node& node, std::byte* arena) const;
  std::vector<const void*> parameter_addresses(const Step& step, const PlanBuffers& buffers) const;
  std::vector<void*> gradient_addresses(const Step& step, const PlanBuffers& buffers) const;
  void run_backward(engine::Stream& stream, const PlanBuffers& buffers, const Graph::Node& node,
                    const Step& step) const;
  void sum_gradients(engine::Stream& stream, std::byte* arena, const Graph::Node& node, const Step& step) const;

  Graph graph_;  // after fusion
  ParameterLayout parameters_;
  std::vector<Step> steps_;              // by node
  std::vector<engine::Layout> layouts_;  // by tensor
  std::vector<std::size_t> values_;      // by tensor: arena offset
  std::vector<Input> inputs_;
  std::optional<Output> output_;
  std::size_t arena_bytes_ = 0;
  std::size_t bytes_without_reuse_ = 0;
};

}  // namespace arbalest::dataflow
