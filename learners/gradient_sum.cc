#include "learners/gradient_sum.h"
#include "engine/waiting.h"

namespace arbalest::learners {

using engine::StepParameters;

GradientSum::GradientSum(engine::Device& device, engine::Stream& stream, std::int64_t trainable)
    : trainable_(trainable),
      values_(device.allocate(static_cast<std::size_t>(trainable) * sizeof(float))),
      host_step_(device.allocate_host(sizeof(StepParameters))),
      step_(device.allocate(sizeof(StepParameters))),
      range_{.begin = 0, .end = trainable} {
  *host_step_.as<StepParameters>() = {.learning_rate = -1.0F};
  stream.copy(step_.data(), host_step_.data(), sizeof(StepParameters), "parameters of the sum");
  engine::wait_for(stream);
}

void GradientSum::enqueue_clear(engine::Stream& stream) const {
  stream.fill_zero(values_.data(), static_cast<std::size_t>(trainable_) * sizeof(float), "clear sum of gradients");
}

void GradientSum::enqueue_add(engine::Stream& stream, const float* gradient, const float* scale,
                              std::int32_t* non_finite) const {
  stream.enqueue(engine::WeightUpdate{.weights = values_.as<float>(),
                                      .gradient = gradient,
                                      .ranges = {&range_, 1},
                                      .rule = engine::Sgd{},
                                      .gradient_scale = scale,
                                      .step = step_.as<StepParameters>(),
                                      .non_finite = non_finite},
                 "sum of gradients");
}

}  // namespace arbalest::learners
