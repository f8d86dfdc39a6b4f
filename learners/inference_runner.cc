#include "learners/inference_runner.h"

namespace arbalest::learners {

InferenceRunner::InferenceRunner(const dataflow::Graph& graph, engine::Device& device, const Options& options)
    : device_(device),
      plan_(graph, device,
            {.batch = options.batch,
             .threads = options.threads,
             .mode = engine::OperatorMode::kInference,
             .precision = options.precision,
             .output = options.output}),
      output_(*plan_.output()),
      weights_(device.allocate(static_cast<std::size_t>(plan_.parameters().elements()) * sizeof(float))),
      arena_(device.allocate(plan_.arena_bytes())),
      step_(device.allocate(sizeof(engine::StepParameters))),
      result_(device.allocate(sizeof(engine::StepResult))),
      stream_(device.create_stream(
          {.name = "inference", .threads = options.threads, .role = engine::StreamRole::kInference})),
      values_(static_cast<std::size_t>(output_.layout.shape().elements())) {
  if (plan_.reads_low_precision_weights()) {
    const auto elements = static_cast<std::size_t>(plan_.parameters().elements());
    rounded_ = device.allocate(elements * sizeof(engine::BFloat16));
  }
  stream_->begin_recording();
  plan_.forward(*stream_, {.weights = weights_.as<float>(),
                           .arena = arena_.as<std::byte>(),
                           .step = step_.as<engine::StepParameters>(),
                           .result = result_.as<engine::StepResult>(),
                           .low_precision_weights = rounded_.as<engine::BFloat16>()});
  forward_ = stream_->end_recording();
}

void InferenceRunner::load(std::span<const dataflow::NamedTensor> model) {
  plan_.parameters().from_canonical(device_, model, weights_.as<float>());
  if (!plan_.reads_low_precision_weights()) return;
  stream_->enqueue(
      engine::RoundWeights{weights_.as<float>(), rounded_.as<engine::BFloat16>(), plan_.parameters().elements()},
      "round weights");
  stream_->record().synchronize();
}

std::span<const float> InferenceRunner::run(const dataflow::Batch& batch) {
  ARBALEST_CHECK(batch.images != nullptr);
  auto* arena = arena_.as<std::byte>();
  stream_->begin_task(batch.number, engine::WorkPhase::kEvaluation);
  stream_->copy(plan_.images(arena), batch.images, plan_.tensor_bytes(dataflow::Graph::kImage), "images");
  stream_->copy(plan_.labels(arena), batch.labels, plan_.tensor_bytes(dataflow::Graph::kLabel), "labels");
  stream_->launch(*forward_, "inference");
  stream_->record().synchronize();
  const engine::Shape& shape = output_.layout.shape();
  device_.convert(output_.layout, arena + output_.offset, device_.plain_layout(shape, engine::DType::kFloat32),
                  values_.data());
  return values_;
}

}  // namespace arbalest::learners
