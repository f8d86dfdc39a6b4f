#include "tests/prediction/step_costs.h"

#include <fmt/format.h>

#include "bench/support/step_graph.h"
#include "dataflow/memory/plan.h"
#include "options/loading/load_job.h"
#include "tests/cudnn/noting_device.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/zoo_layers.h"
#include "train/session/session.h"

namespace arbalest::tests::prediction {

namespace {

using cudnn::NotingDevice;

constexpr double kFloatBytes = sizeof(float);

double convolution_operations(const NotingDevice& device) {
  double operations = 0.0;
  for (const NotingDevice::Note& note : device.notes()) {
    const engine::Shape& weights = note.convolution.weights;
    const double forward = 2.0 * static_cast<double>(note.convolution.output.elements()) *
                           static_cast<double>(weights.elements_per_example());
    operations += forward * (note.input_gradient ? 3.0 : 2.0);
  }
  return operations;
}

// The parameters of rank 2 are the weights of dense layers. In the models of the predictions, no dense layer reads the
// mini-batch.
double dense_operations(const dataflow::Plan& plan) {
  double operations = 0.0;
  for (const dataflow::ParameterEntry& entry : plan.parameters().entries()) {
    if (entry.spec.shape.rank() != 2) continue;
    operations += 3.0 * 2.0 * static_cast<double>(plan.batch()) * static_cast<double>(entry.spec.shape.elements());
  }
  return operations;
}

double tensor_bytes(const dataflow::Plan& plan) {
  double bytes = 0.0;
  for (const dataflow::Graph::Node& node : plan.graph().nodes()) {
    double inputs = 0.0, input_gradients = 0.0;
    for (const int input : node.inputs) {
      const auto size = static_cast<double>(plan.tensor_bytes(input));
      inputs += size;
      if (input >= plan.graph().inputs()) input_gradients += size;  // the mini-batch has no gradient
    }
    const auto output = static_cast<double>(plan.tensor_bytes(node.output));
    const bool is_metric = node.layer->role() == dataflow::LayerRole::kMetric;
    bytes += inputs + output + (is_metric ? 0.0 : inputs + output + input_gradients);
  }
  return bytes;
}

double parameter_bytes(const dataflow::Plan& plan, engine::Precision precision) {
  const auto elements = static_cast<double>(plan.parameters().elements());
  const double rounded = precision == engine::Precision::kBFloat16 ? 2.0 : 0.0;
  const double read = rounded > 0.0 ? rounded : kFloatBytes;
  const double by_layers = 2.0 * read + kFloatBytes;  // read forward and backward, and the gradient is written
  const double by_update = 6.0 * kFloatBytes + rounded;
  return elements * (by_layers + by_update);
}

}  // namespace

std::int64_t count_nodes(const std::string& model, engine::Precision precision) {
  const TemporaryDirectory directory;
  const auto file = directory / "job.txtpb";
  write_text(file, fmt::format("name: \"count\"\nmodel {{ zoo {{ {} }} }}\ndata {{ digits {{}} }}\n"
                               "training {{ batch_size: 4 max_epochs: 1 precision: {} seed: 1 }}\n"
                               "optimizer {{ sgd {{ momentum: 0.9 weight_decay: 5e-4 }} }}\n"
                               "learning_rate {{ base: 0.001 }}\nsynchronization {{ sma {{}} }}\n",
                               model, to_string(precision)));
  const std::vector<std::string> overrides{"devices=cuda:0", "learners.per_device.fixed=1"};
  const jobs::JobOptions job = jobs::load_job(file, overrides);
  bench::StreamFinder finder;
  jobs::Session session(job, directory.path(), {.observer = &finder, .graphs = false});
  const auto advance = [&] { session.scheduler().advance(session.training_ring(), 1); };
  advance();
  session.scheduler().drain();
  bench::StepGraph step(*finder.learner, advance);
  step.replay(1);  // the scheduler waits for the step that was recorded instead of run
  session.scheduler().drain();
  return static_cast<std::int64_t>(step.nodes());
}

StepCosts count_work(const StepQuestion& question) {
  const auto graph = dataflow::Graph::build(question.input, zoo_layers(question.model, question.input));
  NotingDevice device;
  const dataflow::Plan plan(graph, device, {.batch = question.examples, .precision = question.precision});
  StepCosts costs;
  costs.operations = convolution_operations(device) + dense_operations(plan);
  costs.bytes = tensor_bytes(plan) + parameter_bytes(plan, question.precision);
  costs.parameters = plan.parameters().elements();
  return costs;
}

double averaging_bytes(std::int64_t elements, int learners) {
  return learners == 1 ? 0.0 : kFloatBytes * static_cast<double>(elements) * (learners + 3.0);
}

}  // namespace arbalest::tests::prediction
