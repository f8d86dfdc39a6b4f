#include "sma/parameter_server.h"
#include "engine/waiting.h"

#include <algorithm>
#include <utility>

namespace arbalest::sma {

using engine::StepParameters;

namespace {

template <typename T>
std::size_t bytes_by_learner(const ServerNeeds& needs) {
  return static_cast<std::size_t>(needs.learners) * sizeof(T);
}

// AdamW divides by the gradient's size, and its decay is no part of the gradient, so it counts once a step.
engine::UpdateRule rule_for(engine::UpdateRule rule, int mini_batches) {
  const auto count = static_cast<float>(mini_batches);
  if (auto* sgd = std::get_if<engine::Sgd>(&rule)) sgd->weight_decay *= count;
  if (auto* rms_prop = std::get_if<engine::RmsProp>(&rule)) rms_prop->weight_decay *= count;
  if (auto* adagrad = std::get_if<engine::Adagrad>(&rule)) adagrad->weight_decay *= count;
  return rule;
}

}  // namespace

std::size_t ParameterServer::device_bytes(const ServerNeeds& needs, const CentralSizes& sizes) {
  return engine::state_slots(needs.rule).size() * bytes_of(sizes.trainable()) +
         (needs.copies_gradients ? bytes_of(sizes.elements + 1) : 0) + bytes_by_learner<StepParameters>(needs) +
         bytes_by_learner<std::int32_t>(needs);
}

ParameterServer::ParameterServer(engine::Device& device, engine::Stream& stream, const CentralSizes& sizes,
                                 ServerNeeds needs)
    : stream_(stream),
      sizes_(sizes),
      needs_(std::move(needs)),
      rule_(needs_.rule),
      parameters_(device.allocate(bytes_by_learner<StepParameters>(needs_))),
      host_parameters_(device.allocate_host(bytes_by_learner<StepParameters>(needs_))),
      refused_(device.allocate(bytes_by_learner<std::int32_t>(needs_))),
      host_refused_(device.allocate_host(bytes_by_learner<std::int32_t>(needs_))) {
  for (std::size_t slot = 0; slot < engine::state_slots(needs_.rule).size(); ++slot) {
    state_.push_back(device.allocate(bytes_of(sizes.trainable())));
  }
  if (needs_.copies_gradients) {
    gradient_ = device.allocate(bytes_of(sizes.elements));
    scale_ = device.allocate(sizeof(float));
  }
  readers_.reserve(static_cast<std::size_t>(needs_.learners) + 1);
}

void ParameterServer::restart(float* weights, int mini_batches) {
  weights_ = weights;
  rule_ = rule_for(needs_.rule, mini_batches);
  for (const engine::Buffer& slot : state_)
    stream_.fill_zero(slot.data(), bytes_of(sizes_.trainable()), "restart server's state");
  engine::wait_for(stream_);
  std::fill_n(host_refused_.as<std::int32_t>(), needs_.learners, 0);
  steps_ = 0;
  pushed_ = {};
  readers_.clear();
}

void ParameterServer::set_state(std::size_t slot, const float* values, const engine::Event& ready) {
  if (sizes_.trainable() == 0) return;  // a shard of running statistics
  stream_.wait(ready, "wait for the optimizer's state");
  stream_.copy(state(slot), values, bytes_of(sizes_.trainable()), "take over the optimizer's state");
}

engine::Event ParameterServer::push(const Push& push) {
  for (const engine::Event& read : readers_) stream_.wait(read, "wait for readers of the model");
  readers_.clear();
  stream_.wait(push.ready, "wait for the pushed gradient");
  StepParameters& step = host_parameters_.as<StepParameters>()[push.learner];
  step = {.learning_rate = push.learning_rate};
  std::ranges::copy(engine::moment_corrections(rule_, ++steps_), step.moment_corrections);
  stream_.fetch(parameters_.as<StepParameters>() + push.learner, &step, sizeof step, "parameters of the push");
  Push here = push;
  if (push.is_elsewhere && needs_.copies_gradients) {
    const auto trainable = static_cast<std::size_t>(sizes_.trainable());
    auto* gradient = gradient_.as<float>();
    stream_.copy(gradient, push.gradient, bytes_of(sizes_.trainable()), "copy of the gradient");
    stream_.copy(gradient + trainable, push.statistics + trainable, bytes_of(sizes_.statistics), "copy of statistics");
    if (push.gradient_scale != nullptr)
      stream_.copy(scale_.data(), push.gradient_scale, sizeof(float), "copy of scale");
    here.gradient = gradient;
    here.statistics = gradient;
    if (push.gradient_scale != nullptr) here.gradient_scale = scale_.as<float>();
  }
  enqueue_update(here);
  pushed_ = stream_.deliver(host_refused_.as<std::int32_t>() + push.learner, refused_.as<std::int32_t>() + push.learner,
                            sizeof(std::int32_t), "result of the push");
  return pushed_;
}

void ParameterServer::enqueue_update(const Push& push) {
  auto* refused = refused_.as<std::int32_t>() + push.learner;
  if (needs_.ranges.empty()) {  // a shard without elements
    stream_.fill_zero(refused, sizeof *refused, "nothing to refuse");
    return;
  }
  engine::WeightUpdate update{.weights = weights_,
                              .gradient = push.gradient,
                              .statistics = push.statistics,
                              .ranges = needs_.ranges,
                              .rule = rule_,
                              .gradient_scale = push.gradient_scale,
                              .step = parameters_.as<StepParameters>() + push.learner,
                              .non_finite = refused};
  for (std::size_t slot = 0; slot < state_.size(); ++slot) update.state[slot] = state_[slot].as<float>();
  stream_.enqueue(update, "server's update");
}

}  // namespace arbalest::sma
