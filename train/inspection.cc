#include "train/inspection.h"

#include <algorithm>
#include <variant>

#include "dataflow/input/images/stored_images.h"
#include "dataflow/memory/plan.h"
#include "engine/backends/devices.h"
#include "messages/signed_bytes.h"
#include "messages/text.h"
#include "options/readers/learners_reader.h"
#include "options/sparse/graph_needed.h"
#include "options/split/split_check.h"
#include "train/session/memory_estimate.h"
#include "train/session/session.h"

namespace arbalest::jobs {

namespace {

constexpr std::int64_t kManyExamples = std::int64_t{1} << 40U;  // no ring is as long as this

// Estimates before any data is read, from the splits' known sizes. A validation set that is split off the training set
// makes a GPU's copy of that smaller, but not the host's memory (StoredImages::split_off).
MemoryEstimate estimate(const JobOptions& job, std::span<const std::unique_ptr<learners::LearnerPool>> pools,
                        std::span<const std::unique_ptr<engine::Device>> devices, const AvailableMemory& available) {
  const auto split = [&](const std::optional<std::int64_t>& examples) {
    if (!examples) return SplitSize{.examples = kManyExamples};  // only the dataset's files tell the number
    const std::size_t bytes = dataflow::ByteImages::bytes(job.data.input, *examples);
    return SplitSize{*examples,
                     std::ranges::all_of(devices, [&](const auto& device) { return may_be_cached(*device, bytes); }),
                     bytes};
  };
  SplitSizes sizes{.training = split(job.data.training_examples), .test = split(job.data.test_examples)};
  if (job.data.has_validation()) sizes.validation = split(job.data.validation_examples);
  if (job.data.validation) sizes.training.bytes += sizes.validation->bytes;
  return {job, pools, sizes, available};
}

void describe_layers(const dataflow::Plan& training, Inspection& result) {
  const dataflow::Graph& graph = training.graph();
  const std::vector<engine::Shape> shapes = graph.shapes(result.batch_size);
  const dataflow::Backward backward = dataflow::derive_backward(graph);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const dataflow::Graph::Node& node = graph.nodes()[n];
    const std::vector<engine::Shape> inputs = dataflow::Graph::input_shapes(node, shapes);
    LayerRow row{.name = node.label,
                 .kind = std::string(node.layer->kind()),
                 .output = to_string(shapes[static_cast<std::size_t>(node.output)]),
                 .forward_flops = node.layer->forward_flops(inputs),
                 .output_bytes = signed_bytes(training.tensor_bytes(node.output))};
    for (const dataflow::ParameterSpec& parameter : dataflow::Graph::parameters(node, shapes)) {
      if (!parameter.is_statistic()) row.parameters += parameter.whole_shape().elements();
    }
    // One forward pass, one for the gradient of the input and one for that of the parameters, as far as they exist.
    const bool input_gradient = std::ranges::any_of(
        node.inputs, [&](int input) { return backward.tensor_gradient[static_cast<std::size_t>(input)]; });
    const std::int64_t passes =
        1 + (backward.node[n] && input_gradient ? 1 : 0) + (backward.node[n] && row.parameters > 0 ? 1 : 0);
    result.training_flops += passes * row.forward_flops;
    result.forward_flops += row.forward_flops;
    result.parameters += row.parameters;
    result.layers.push_back(std::move(row));
  }
}

void describe_memory(const JobOptions& job, const MemoryEstimate& memory, Inspection& result) {
  result.learner_bytes = memory.learner_bytes(0);
  result.dataset_bytes = memory.dataset_bytes();
  result.learners_per_device = job.learners_per_device;
  result.memory = memory.uses(job.learners_per_device);
  result.most_learners_per_device = memory.most_learners();
  result.most_memory = memory.uses(memory.most_learners());
  const MemoryUse& use = job.devices.front().is_cuda() ? result.memory.at(1) : result.memory.front();
  result.device_bytes = use.needed - memory.bytes_of_learners(use, job.learners_per_device);
  result.available_bytes = use.available;
  result.learners_that_fit = memory.learners_that_fit();
  result.is_split = is_split(job);
  if (const std::string lowered = memory.lowered_bound(); !lowered.empty()) result.warnings.push_back(lowered);
  try {
    memory.check();
  } catch (const DoesNotFit& problem) {
    result.warnings.push_back(fmt::format("the job does not fit: {}", problem.what()));
  }
}

void describe_kernels(std::span<const std::unique_ptr<engine::Device>> devices, engine::KernelSelection kernels,
                      Inspection& result) {
  result.kernels_are_timed = kernels == engine::KernelSelection::kTimed;
  for (const auto& device : devices) {
    for (const engine::KernelChoice& choice : device->kernel_choices()) {
      result.kernels.push_back({device->name(), choice});
    }
  }
  if (result.kernels_are_timed && !devices.front()->is_cuda()) {
    result.warnings.emplace_back("--timings has no effect: CPUs have no candidates of kernels to time");
  }
}

}  // namespace

Inspection inspect(const JobOptions& job, engine::KernelSelection kernels) {
  require_replicas(job, "arbalest inspect");
  std::vector<std::unique_ptr<engine::Device>> devices;
  const engine::DeviceOptions options{.kernels = kernels};
  for (const engine::DeviceSpec& spec : job.devices) devices.push_back(engine::open_device(spec, options));
  engine::process::World alone;
  const AvailableMemory available(devices);  // before kernels are timed, which holds memory
  const std::vector<std::unique_ptr<learners::LearnerPool>> pools =
      make_pools(job, devices, connect_split(job, devices, alone));
  const dataflow::Plan& training = pools.front()->training_plan();

  Inspection result;
  result.batch_size = job.training.batch_size;
  result.precision = job.training.precision;
  if (job.training.chooses_precision) {
    result.warnings.emplace_back("precision AUTO is settled when a run begins; this report is about FP32");
  }
  describe_layers(training, result);
  result.weight_bytes = training.parameters().elements() * signed_bytes(sizeof(float));
  result.arena_bytes = signed_bytes(training.arena_bytes());
  result.arena_bytes_without_reuse = signed_bytes(training.bytes_without_reuse());
  const bool knows_validation = !job.data.has_validation() || job.data.validation_examples;
  if (!job.data.training_examples || !knows_validation) {
    result.warnings.push_back(
        fmt::format("the number of examples of the {} is known only from the files: the estimate leaves out their "
                    "memory, and counts rings of mini-batches at their longest",
                    job.data.training_examples ? "validation set" : "datasets"));
  }
  describe_memory(job, estimate(job, pools, devices, available), result);
  result.team = pools.front()->most_team();
  result.teams_vary = result.team > 1 && may_resize(job);
  if (job.chooses_team && most_learners_of_device(job) > 1) result.layers_in_turn = training.layers_in_turn();
  result.team_that_fits = pools.front()->team_for(std::max(1, result.learners_that_fit));
  result.schedule = scheduler::name_of(job.learning_rate.curve);
  if (const auto* plateau = std::get_if<scheduler::Plateau>(&job.learning_rate.curve)) {
    result.schedule_note = fmt::format(
        "this is the learning rate until the first decay step; whenever {} in a row do not improve the score, it is "
        "multiplied by {:g}",
        counted(std::int64_t{plateau->patience} + 1, "epoch"), plateau->factor);
  }
  result.plan = plan_of(job);
  describe_kernels(devices, kernels, result);
  return result;
}

}  // namespace arbalest::jobs
