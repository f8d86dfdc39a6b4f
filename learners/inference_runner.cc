#include "learners/inference_runner.h"

#include <fmt/format.h>

#include "engine/waiting.h"
#include "learners/batch_copy.h"

namespace arbalest::learners {

InferenceRunner::InferenceRunner(const InferenceModel& model, int number)
    : model_(model),
      arena_(model.device().allocate(model.plan().arena_bytes())),
      step_(model.device().allocate(sizeof(engine::StepParameters))),
      result_(model.device().allocate(sizeof(engine::StepResult))),
      host_result_(model.device().allocate_host(sizeof(engine::StepResult))),
      stream_(model.device().create_stream({.name = fmt::format("inference {}", number),
                                            .threads = model.threads(),
                                            .first_core = number * model.threads(),
                                            .role = engine::StreamRole::kInference})) {
  if (model.plan().output()) {
    plain_ = model.device().plain_layout(output_shape(), engine::DType::kFloat32);
    is_plain_ = model.plan().output()->layout == plain_;
    elements_ = static_cast<std::size_t>(output_shape().elements());
    values_ = model.device().allocate_host(plain_.bytes());
  }
  stream_->begin_recording();
  model.plan().forward(*stream_, {.weights = model.weights(),
                                  .arena = arena_.as<std::byte>(),
                                  .step = step_.as<engine::StepParameters>(),
                                  .result = result_.as<engine::StepResult>(),
                                  .low_precision_weights = model.rounded()});
  forward_ = stream_->end_recording();
}

InferenceRunner::Result InferenceRunner::run(const dataflow::Batch& batch) {
  const dataflow::Plan& plan = model_.plan();
  auto* arena = arena_.as<std::byte>();
  stream_->begin_task(batch.number, engine::WorkPhase::kEvaluation);
  copy_batch(*stream_, plan, batch, arena);
  stream_->launch(*forward_, "inference");
  const auto& output = plan.output();
  if (is_plain_) stream_->copy(values_.data(), arena + output->offset, output->layout.bytes(), "output");
  engine::wait_for(stream_->deliver(host_result_.data(), result_.data(), sizeof(engine::StepResult), "result"));
  if (output && !is_plain_) model_.device().convert(output->layout, arena + output->offset, plain_, values_.data());
  return {{values_.as<float>(), elements_}, *host_result_.as<engine::StepResult>()};
}

}  // namespace arbalest::learners
