#include "jobs/run/inspection.h"

#include <algorithm>

#include "dataflow/plan.h"
#include "engine/host/topology.h"
#include "jobs/run/session.h"

namespace arbalest::jobs {

namespace {

std::int64_t signed_bytes(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

}  // namespace

Inspection inspect(const JobOptions& job) {
  const std::unique_ptr<engine::Device> device = engine::open_device(job.devices.front());
  const int learners = job.learners_per_device.front();
  const int threads = std::max(1, device->cores() / learners);
  const dataflow::Plan training(job.graph, *device, {.batch = job.training.batch_size, .threads = threads});
  const dataflow::Plan inference(job.graph, *device,
                                 {.batch = evaluation_batch_size(job),
                                  .threads = threads,
                                  .mode = engine::OperatorMode::kInference,
                                  .parameters = &training.parameters()});

  Inspection result;
  result.batch_size = job.training.batch_size;
  const std::vector<engine::Shape> shapes = job.graph->shapes(result.batch_size);
  const dataflow::Backward backward = dataflow::derive_backward(*job.graph);
  for (std::size_t n = 0; n < job.graph->nodes().size(); ++n) {
    const dataflow::Graph::Node& node = job.graph->nodes()[n];
    const std::vector<engine::Shape> inputs = dataflow::Graph::input_shapes(node, shapes);
    LayerRow row{.name = node.name,
                 .kind = std::string(node.layer->kind()),
                 .output = to_string(shapes[static_cast<std::size_t>(node.output)]),
                 .forward_flops = node.layer->forward_flops(inputs),
                 .output_bytes = signed_bytes(training.tensor_bytes(node.output))};
    for (const dataflow::ParameterSpec& parameter : node.layer->parameters(inputs)) {
      row.parameters += parameter.shape.elements();
    }
    // One pass forward, one for the gradient of the input if there is one, one for the parameters' if there are any.
    const bool input_gradient = backward.tensor_gradient[static_cast<std::size_t>(node.inputs[0])];
    const std::int64_t passes = 1 + (backward.node[n] && input_gradient ? 1 : 0) + (row.parameters > 0 ? 1 : 0);
    result.training_flops += passes * row.forward_flops;
    result.forward_flops += row.forward_flops;
    result.parameters += row.parameters;
    result.layers.push_back(std::move(row));
  }

  result.weight_bytes = training.parameters().elements() * signed_bytes(sizeof(float));
  result.arena_bytes = signed_bytes(training.arena_bytes());
  result.arena_bytes_without_reuse = signed_bytes(training.bytes_without_reuse());
  constexpr int kVectorsOfLearner = 3;  // weights, gradient, momentum
  constexpr int kVectorsOfDevice = 4;   // two central models, sum of differences, evaluation weights
  const auto batch_bytes = signed_bytes(training.tensor_bytes(dataflow::Graph::kImage));
  const auto slots = std::int64_t{scheduler::kRunAhead + 2} * job.synchronization.period;  // of the batch ring
  result.learner_bytes = kVectorsOfLearner * result.weight_bytes +
                         std::max(result.arena_bytes, signed_bytes(inference.arena_bytes())) + slots * batch_bytes;
  result.device_bytes = kVectorsOfDevice * result.weight_bytes;
  result.available_bytes = signed_bytes(engine::host::available_memory_bytes());
  result.learners_that_fit =
      std::max<std::int64_t>(0, (result.available_bytes - result.device_bytes) / result.learner_bytes);
  return result;
}

}  // namespace arbalest::jobs
