#include "learners/inference_model.h"

#include "engine/base/error.h"
#include "engine/waiting.h"

namespace arbalest::learners {

namespace {

// Folding was measured with float32 on CPUs only.
std::optional<dataflow::BatchNormFolding> folding_for(const dataflow::Graph& graph, const engine::Device& device,
                                                      const InferenceModel::Options& options) {
  const bool folds = options.prediction && !device.is_cuda() && options.precision == engine::Precision::kFloat32;
  return folds ? std::make_optional<dataflow::BatchNormFolding>(graph, options.output) : std::nullopt;
}

}  // namespace

InferenceModel::InferenceModel(const dataflow::Graph& graph, engine::Device& device, const Options& options)
    : device_(device),
      threads_(options.threads),
      folding_(folding_for(graph, device, options)),
      plan_(folding_ ? folding_->graph() : graph, device,
            {.batch = options.batch,
             .threads = options.threads,
             .mode = engine::OperatorMode::kInference,
             .precision = options.precision,
             .parameters = options.parameters,
             .output = options.output}),
      weights_(device.allocate(static_cast<std::size_t>(plan_.parameters().elements()) * sizeof(float))) {
  ARBALEST_CHECK(!options.prediction || options.parameters == nullptr);
  if (!plan_.reads_low_precision_weights()) return;
  rounded_ = device.allocate(static_cast<std::size_t>(plan_.parameters().elements()) * sizeof(engine::BFloat16));
}

void InferenceModel::load(std::span<const dataflow::NamedTensor> model) {
  if (folding_) {
    plan_.parameters().from_canonical(device_, folding_->fold(model), weights());
  } else {
    plan_.parameters().from_canonical(device_, model, weights());
  }
  if (rounded() == nullptr) return;
  const auto stream =
      device_.create_stream({.name = "weights", .threads = threads_, .role = engine::StreamRole::kInference});
  stream->enqueue(engine::RoundWeights{weights(), rounded(), plan_.parameters().elements()}, "round weights");
  engine::wait_for(*stream);
}

}  // namespace arbalest::learners
