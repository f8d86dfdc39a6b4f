#include "dataflow/memory/plan.h"

#include <algorithm>
#include <utility>

#include "dataflow/fusion.h"
#include "dataflow/memory/buffer_lifetimes.h"
#include "dataflow/memory/memory_plan.h"
#include "dataflow/parameter_rules.h"

namespace arbalest::dataflow {

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// The output of a layer that runs and whose output is a tensor.
int tensor_of(const Graph& graph, const std::vector<bool>& runs, const std::string& name) {
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Graph::Node& node = graph.nodes()[n];
    if (node.name == name && runs[n] && node.layer->role() == LayerRole::kHidden) return node.output;
  }
  engine::fail(engine::ErrorKind::kInternal, "internal error: no layer '{}' has an output that can be read", name);
}

std::byte* address(std::byte* arena, std::size_t offset, std::size_t nowhere) {
  return offset == nowhere ? nullptr : arena + offset;
}

}  // namespace

Plan::Plan(const Graph& graph, engine::Device& device, const PlanOptions& options) {
  FusedGraph fused = fuse(graph, options.output);
  graph_ = std::move(fused.graph);
  Backward backward = derive_backward(graph_);
  std::vector<bool> forward(graph_.nodes().size(), true);
  if (options.mode == engine::OperatorMode::kInference) {
    forward = needed_at_inference(graph_);
    backward.node.assign(backward.node.size(), false);
    backward.tensor_gradient.assign(backward.tensor_gradient.size(), false);
  }
  prepare_operators(device, options, forward, backward);
  place_buffers(forward, backward, fused.kept);
}

void Plan::prepare_operators(engine::Device& device, const PlanOptions& options, const std::vector<bool>& forward,
                             const Backward& backward) {
  const std::vector<engine::Shape> shapes = graph_.shapes(options.batch);
  for (const TensorDescription& tensor : graph_.input().tensors) {
    layouts_.push_back(device.plain_layout(shapes[layouts_.size()], tensor.dtype));
  }
  std::vector<ParameterEntry> parameters;
  bool has_loss = false;
  for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Graph::Node& node = graph_.nodes()[n];
    const std::vector<ParameterSpec> specs = Graph::parameters(node, shapes);
    std::vector<engine::Layout> inputs;
    for (const int input : node.inputs) inputs.push_back(layouts_[at(input)]);
    engine::PrepareOptions prepare{.mode = options.mode,
                                   .threads = options.threads,
                                   .input_gradient = false,
                                   .replicas = options.replicas,
                                   .adds_to_loss = has_loss,
                                   .precision = options.precision};
    for (const int input : node.inputs) {
      prepare.no_gradient.push_back(!backward.tensor_gradient[at(input)]);
      prepare.input_gradient |= backward.tensor_gradient[at(input)];
    }
    for (std::size_t p = 0; options.parameters != nullptr && p < specs.size(); ++p) {
      prepare.parameters.push_back(options.parameters->entries()[parameters.size() + p].native);
    }
    Step step;
    try {
      step.op = device.prepare(node.layer->operator_spec(inputs, node.key), prepare);
    } catch (const engine::Error& error) {
      throw engine::Error(error.kind(), fmt::format("{}: layer '{}': {}", device.name(), node.label, error.what()));
    }
    step.backward_label = node.label + " backward";
    step.sum_label = node.label + " gradient sum";
    step.first_parameter = parameters.size();
    step.runs_forward = forward[n];
    step.runs_backward = backward.node[n];
    has_loss |= step.runs_forward && node.layer->role() == LayerRole::kLoss;
    layouts_.push_back(step.op->traits().output);
    ARBALEST_CHECK(layouts_.back().shape() == shapes[at(node.output)]);
    ARBALEST_CHECK(step.op->traits().parameters.size() == specs.size());
    ARBALEST_CHECK(options.parameters == nullptr || step.op->traits().parameters == prepare.parameters);
    for (std::size_t p = 0; p < specs.size(); ++p) {
      ParameterSpec spec = specs[p];
      if (std::ranges::count(options.without_decay, spec.kind) > 0) spec.decay_multiplier = 0.0F;
      parameters.push_back({parameter_name(node, spec), spec, step.op->traits().parameters[p]});
    }
    steps_.push_back(std::move(step));
  }
  parameters_ = ParameterLayout(std::move(parameters));
}

void Plan::place_buffers(const std::vector<bool>& forward, const Backward& backward, const std::string& output) {
  std::vector<engine::OperatorTraits> traits;
  for (const Step& step : steps_) traits.push_back(step.op->traits());
  const int kept = output.empty() ? kNoTensor : tensor_of(graph_, forward, output);
  const BufferLifetimes buffers = find_lifetimes(graph_, layouts_, traits, forward, backward, kept);
  const MemoryPlan memory = plan_memory(buffers.lifetimes);
  arena_bytes_ = memory.bytes;
  bytes_without_reuse_ = buffers.bytes_without_reuse;
  const auto offset = [&](int buffer) { return buffer < 0 ? kNowhere : memory.offsets[at(buffer)]; };
  for (const int buffer : buffers.value) values_.push_back(offset(buffer));
  for (const TensorDescription& tensor : graph_.input().tensors) {
    const std::size_t number = inputs_.size();
    inputs_.push_back({tensor.name, layouts_[number], values_[number]});
  }
  if (kept != kNoTensor) output_ = Output{layouts_[at(kept)], values_[at(kept)]};
  for (std::size_t n = 0; n < steps_.size(); ++n) {
    steps_[n].saved_offset = offset(buffers.saved[n]);
    steps_[n].forward_scratch_offset = offset(buffers.forward_scratch[n]);
    steps_[n].backward_scratch_offset = offset(buffers.backward_scratch[n]);
    const NodeGradients& gradients = buffers.gradients[n];
    steps_[n].gradients.output = offset(gradients.output);
    steps_[n].gradients.copied_from = offset(gradients.copied_from);
    for (const InputGradient& of : gradients.inputs) {
      steps_[n].gradients.inputs.push_back({offset(of.written), offset(of.before), offset(of.sum)});
    }
  }
}

std::size_t Plan::input_offset(std::string_view name, engine::DType dtype) const {
  const auto input = std::ranges::find(inputs_, name, &Input::name);
  ARBALEST_CHECK(input != inputs_.end() && input->layout.dtype() == dtype);
  return input->offset;
}

void* Plan::forward_output(const Graph::Node& node, const PlanBuffers& buffers) const {
  switch (node.layer->role()) {
    case LayerRole::kLoss: return &buffers.result->sums[engine::kLossSum];
    case LayerRole::kMetric: return &buffers.result->sums[engine::kLossSum + 1];
    case LayerRole::kHidden: break;
  }
  return buffers.arena + values_[at(node.output)];
}

std::vector<const void*> Plan::input_addresses(const Graph::Node& node, std::byte* arena) const {
  std::vector<const void*> addresses;
  for (const int input : node.inputs) addresses.push_back(arena + values_[at(input)]);
  return addresses;
}

bool Plan::reads_low_precision_weights() const {
  return std::ranges::any_of(steps_, [](const Step& step) { return step.op->traits().low_precision_weights; });
}

std::vector<std::string> Plan::layers_in_turn() const {
  std::vector<std::string> names;
  for (std::size_t n = 0; n < steps_.size(); ++n) {
    if (steps_[n].op != nullptr && steps_[n].op->traits().runs_replicas_in_turn)
      names.push_back(graph_.nodes()[n].label);
  }
  return names;
}

std::vector<const void*> Plan::parameter_addresses(const Step& step, const PlanBuffers& buffers) const {
  const engine::OperatorTraits& traits = step.op->traits();
  std::vector<const void*> addresses;
  for (std::size_t p = 0; p < traits.parameters.size(); ++p) {
    const std::int64_t offset = parameters_.entries()[step.first_parameter + p].offset;
    addresses.push_back(buffers.weights + offset);
    if (p == 0 && traits.low_precision_weights) addresses.back() = buffers.low_precision_weights + offset;
  }
  return addresses;
}

std::vector<void*> Plan::gradient_addresses(const Step& step, const PlanBuffers& buffers) const {
  if (buffers.gradient == nullptr) return {};
  std::vector<void*> addresses;
  for (std::size_t p = 0; p < step.op->traits().parameters.size(); ++p) {
    addresses.push_back(buffers.gradient + parameters_.entries()[step.first_parameter + p].offset);
  }
  return addresses;
}

void Plan::forward(engine::Stream& stream, const PlanBuffers& buffers) const {
  for (std::size_t n = 0; n < steps_.size(); ++n) {
    const Graph::Node& node = graph_.nodes()[n];
    const Step& step = steps_[n];
    if (!step.runs_forward) continue;
    const std::vector<const void*> inputs = input_addresses(node, buffers.arena);
    const std::vector<const void*> parameters = parameter_addresses(step, buffers);
    const std::vector<void*> gradients = gradient_addresses(step, buffers);
    step.op->forward(stream, node.label.c_str(),
                     {.inputs = inputs,
                      .output = forward_output(node, buffers),
                      .parameters = parameters,
                      .parameter_gradients = gradients,
                      .input_gradient = step.op->traits().forward_writes_gradient
                                            ? address(buffers.arena, step.gradients.inputs[0].written, kNowhere)
                                            : nullptr,
                      .saved = address(buffers.arena, step.saved_offset, kNowhere),
                      .scratch = address(buffers.arena, step.forward_scratch_offset, kNowhere),
                      .step = buffers.step});
  }
}

std::vector<GradientPart> Plan::gradient_parts(std::int64_t bytes) const {
  std::vector<std::optional<std::int64_t>> first_element;
  for (const Step& step : steps_) {
    std::optional<std::int64_t>& first = first_element.emplace_back();
    for (std::size_t p = 0; p < step.op->traits().parameters.size(); ++p) {
      const ParameterEntry& entry = parameters_.entries()[step.first_parameter + p];
      if (!first && entry.spec.is_trained()) first = entry.offset;
    }
  }
  return dataflow::gradient_parts(first_element, parameters_.trainable_elements(), bytes);
}

void Plan::backward(engine::Stream& stream, const PlanBuffers& buffers) const {
  for (const GradientPart& part : gradient_parts(0)) backward(stream, buffers, part);
}

void Plan::backward(engine::Stream& stream, const PlanBuffers& buffers, const GradientPart& part) const {
  for (std::size_t n = part.last_node; n-- > part.first_node;) {
    const Graph::Node& node = graph_.nodes()[n];
    const Step& step = steps_[n];
    if (!step.runs_backward) continue;
    if (step.gradients.copied_from != kNowhere) {
      stream.copy(buffers.arena + step.gradients.output, buffers.arena + step.gradients.copied_from,
                  layouts_[at(node.output)].bytes(), step.backward_label.c_str());
    }
    if (!step.op->traits().forward_writes_gradient) run_backward(stream, buffers, node, step);
    sum_gradients(stream, buffers.arena, node, step);
  }
}

void Plan::run_backward(engine::Stream& stream, const PlanBuffers& buffers, const Graph::Node& node,
                        const Step& step) const {
  const std::vector<const void*> inputs = input_addresses(node, buffers.arena);
  const std::vector<const void*> parameters = parameter_addresses(step, buffers);
  std::vector<void*> input_gradients;
  const void* addend = nullptr;
  for (const InputGradientOffsets& of : step.gradients.inputs) {
    input_gradients.push_back(address(buffers.arena, of.written, kNowhere));
    if (of.sum == kNowhere && of.before != kNowhere) addend = address(buffers.arena, of.before, kNowhere);
  }
  const std::vector<void*> parameter_gradients = gradient_addresses(step, buffers);
  step.op->backward(stream, step.backward_label.c_str(),
                    {.inputs = inputs,
                     .output = forward_output(node, buffers),
                     .output_gradient = address(buffers.arena, step.gradients.output, kNowhere),
                     .input_gradients = input_gradients,
                     .addend = addend,
                     .parameters = parameters,
                     .parameter_gradients = parameter_gradients,
                     .saved = address(buffers.arena, step.saved_offset, kNowhere),
                     .scratch = address(buffers.arena, step.backward_scratch_offset, kNowhere),
                     .step = buffers.step});
}

void Plan::sum_gradients(engine::Stream& stream, std::byte* arena, const Graph::Node& node, const Step& step) const {
  for (std::size_t k = 0; k < step.gradients.inputs.size(); ++k) {
    const InputGradientOffsets& of = step.gradients.inputs[k];
    if (of.sum == kNowhere) continue;
    const engine::Layout& layout = layouts_[at(node.inputs[k])];
    stream.enqueue(
        engine::TensorSum{.a = arena + of.before,
                          .b = arena + of.written,
                          .sum = arena + of.sum,
                          .elements = static_cast<std::int64_t>(layout.bytes() / engine::size_of(layout.dtype())),
                          .dtype = layout.dtype()},
        step.sum_label.c_str());
  }
}

}  // namespace arbalest::dataflow
