// Runs one training step of a plan on a device; reference_graph.h does the same in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/memory/plan.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"
#include "tests/support/numbers.h"
#include "tests/support/reference_graph.h"

namespace arbalest::tests {

struct PlanInput {
  Values images;
  Labels labels;
  std::map<std::string, Values> parameters;  // by name, in canonical order
};

// Returns random images, labels in a fixed pattern, and random parameters as large as the initial values of training.
inline PlanInput random_plan_input(const dataflow::Graph& graph, std::int64_t batch, std::int64_t classes) {
  const std::vector<engine::Shape> shapes = graph.shapes(batch);
  PlanInput input{random_values(shapes.front().elements(), 1), {}, {}};
  for (std::int64_t n = 0; n < batch; ++n) input.labels.push_back(static_cast<std::int32_t>((3 * n + 1) % classes));
  unsigned seed = 2;
  for (const dataflow::Graph::Node& node : graph.nodes()) {
    for (const dataflow::ParameterSpec& spec : node.layer->parameters(dataflow::Graph::input_shapes(node, shapes))) {
      Values values = random_values(spec.shape.elements(), seed++);
      const double scale = spec.shape.rank() > 1 ? 2.0 / std::sqrt(static_cast<double>(spec.fan.in)) : 0.1;
      for (double& value : values) value = static_cast<double>(static_cast<float>(value * scale));
      input.parameters[node.name + "." + spec.name] = std::move(values);
    }
  }
  return input;
}

struct PlanRun {
  engine::StepResult result;
  std::map<std::string, std::vector<float>> gradients;  // by name of the parameter, in canonical order
};

// Runs the forward pass and, for a training plan, the backward pass. The arena starts with garbage. Checks that nothing
// is written past its end. Unless `recorded`, the step is enqueued operator by operator, and an observer of the
// device's streams sees each.
inline PlanRun run_plan(engine::Device& device, const dataflow::Plan& plan, const PlanInput& input, int threads,
                        bool recorded = true) {
  const auto elements = static_cast<std::size_t>(plan.parameters().elements());
  const engine::Buffer weights = device.allocate(elements * sizeof(float));
  const engine::Buffer rounded = device.allocate(elements * sizeof(engine::BFloat16));
  const engine::Buffer gradient = upload(device, std::vector<float>(elements, 12.0F));
  const std::vector<unsigned char> guard(256, 0x41);
  const engine::Buffer arena = upload(device, std::vector<unsigned char>(plan.arena_bytes() + guard.size(), 0x41));
  const engine::Buffer step = upload(device, std::vector{engine::StepParameters{.task = 4, .seed = 9}});
  const engine::Buffer result = upload(device, std::vector{engine::StepResult{.sums = {77.0F, 77.0F}}});
  std::vector<dataflow::NamedTensor> tensors = plan.parameters().to_canonical(device, weights.as<float>());
  for (dataflow::NamedTensor& tensor : tensors) {
    const Values& values = input.parameters.at(tensor.name);
    std::ranges::transform(values, tensor.values.begin(), [](double value) { return static_cast<float>(value); });
  }
  plan.parameters().from_canonical(device, tensors, weights.as<float>());

  const auto stream = device.create_stream({.name = "test", .threads = threads});
  stream->enqueue(
      engine::RoundWeights{weights.as<float>(), rounded.as<engine::BFloat16>(), static_cast<std::int64_t>(elements)},
      "round");
  const dataflow::PlanBuffers buffers{weights.as<float>(),
                                      gradient.as<float>(),
                                      arena.as<std::byte>(),
                                      step.as<engine::StepParameters>(),
                                      result.as<engine::StepResult>(),
                                      plan.reads_low_precision_weights() ? rounded.as<engine::BFloat16>() : nullptr};
  const auto enqueue = [&] {
    plan.forward(*stream, buffers);
    plan.backward(*stream, buffers);
  };
  std::unique_ptr<engine::TaskGraph> graph;
  if (recorded) {  // the end of a recording may run the libraries' operators once, so the input comes later
    stream->begin_recording();
    enqueue();
    graph = stream->end_recording();
  }
  const std::vector<float> images(input.images.begin(), input.images.end());
  copy(device, plan.input<float>("image", arena.as<std::byte>()), images.data(), images.size() * sizeof(float));
  copy(device, plan.input<std::int32_t>("label", arena.as<std::byte>()), input.labels.data(),
       input.labels.size() * sizeof(std::int32_t));
  if (recorded) {
    stream->launch(*graph, "step");
  } else {
    enqueue();
  }
  stream->record().synchronize();
  CHECK(download<unsigned char>(device, arena.as<std::byte>() + plan.arena_bytes(), guard.size()) == guard);
  PlanRun run{download<engine::StepResult>(device, result.data(), 1)[0], {}};
  for (const dataflow::NamedTensor& tensor : plan.parameters().to_canonical(device, gradient.as<float>())) {
    run.gradients[tensor.name] = tensor.values;
  }
  return run;
}

}  // namespace arbalest::tests
