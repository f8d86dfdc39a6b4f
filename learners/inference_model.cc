#include "learners/inference_model.h"

namespace arbalest::learners {

InferenceModel::InferenceModel(const dataflow::Graph& graph, engine::Device& device, const Options& options)
    : device_(device),
      threads_(options.threads),
      plan_(graph, device,
            {.batch = options.batch,
             .threads = options.threads,
             .mode = engine::OperatorMode::kInference,
             .precision = options.precision,
             .parameters = options.parameters,
             .output = options.output}),
      weights_(device.allocate(static_cast<std::size_t>(plan_.parameters().elements()) * sizeof(float))) {
  if (!plan_.reads_low_precision_weights()) return;
  rounded_ = device.allocate(static_cast<std::size_t>(plan_.parameters().elements()) * sizeof(engine::BFloat16));
}

void InferenceModel::load(std::span<const dataflow::NamedTensor> model) {
  plan_.parameters().from_canonical(device_, model, weights());
  if (rounded() == nullptr) return;
  const auto stream =
      device_.create_stream({.name = "weights", .threads = threads_, .role = engine::StreamRole::kInference});
  stream->enqueue(engine::RoundWeights{weights(), rounded(), plan_.parameters().elements()}, "round weights");
  stream->record().synchronize();
}

}  // namespace arbalest::learners
