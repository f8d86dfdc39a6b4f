// A learner's vectors for tests of its step, and the step by the formulas.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "engine/elementwise/bfloat16.h"
#include "engine/passes/weight_update.h"
#include "tests/engine/operator_run.h"
#include "tests/support/device_memory.h"
#include "tests/support/numbers.h"
#include "tests/support/reference_update.h"

namespace arbalest::tests {

using engine::Adagrad;
using engine::AdamW;
using engine::Buffer;
using engine::RmsProp;
using engine::Sgd;
using engine::StepParameters;
using engine::UpdateRange;
using engine::UpdateRule;
using engine::WeightUpdate;

constexpr std::int64_t kElements = 1003;  // not a multiple of any vector length
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline const std::vector<UpdateRule>& rules() {
  static const std::vector<UpdateRule> kRules = {Sgd{.momentum = 0.9F, .weight_decay = 0.01F},
                                                 Sgd{.weight_decay = 0.01F},
                                                 Sgd{.momentum = 0.9F, .nesterov = true, .weight_decay = 0.01F},
                                                 RmsProp{.smoothing = 0.9F, .epsilon = 1e-3F, .weight_decay = 0.01F},
                                                 RmsProp{.momentum = 0.5F, .weight_decay = 0.01F},
                                                 AdamW{.beta1 = 0.8F, .beta2 = 0.99F, .weight_decay = 0.1F},
                                                 Adagrad{.epsilon = 1e-3F, .weight_decay = 0.01F}};
  return kRules;
}

// A learner's vectors on the host, and the gradients of its steps.
struct Vectors {
  UpdateRule rule = Sgd{.momentum = 0.9F, .weight_decay = 0.01F};
  Floats weights = random_floats(kElements, 1);
  std::vector<Floats> state;
  std::vector<Floats> gradients = {random_floats(kElements, 3)};  // by step
  std::vector<Floats> statistics;                                 // by step; empty: they are in the gradients
  Floats references[2] = {random_floats(kElements, 4), random_floats(kElements, 5)};
  std::vector<UpdateRange> ranges = {{0, 500, 1.0F, 1.0F}, {500, 700, 2.0F, 0.0F}, {700, kElements, 0.5F, 3.0F}};
  StepParameters step = {.learning_rate = 0.05F, .pull = 0.25F, .reference = 1};
  std::optional<float> gradient_scale;
  std::int32_t non_finite = -1;
  std::vector<std::uint16_t> rounded = std::vector<std::uint16_t>(kElements, 0x4141);  // bits
  bool wants_rounded = true;

  // Runs all steps on a stream of `threads` threads.
  void run(bool averaged, int threads = 1) {
    const auto device = open_test_device();
    const auto stream = device->create_stream({"test", threads});
    const Buffer weights_there = upload(*device, weights);
    const Buffer references_there[2] = {upload(*device, references[0]), upload(*device, references[1])};
    const Buffer scale_there = upload(*device, std::vector{gradient_scale.value_or(kNaN)});
    const Buffer count_there = upload(*device, std::vector{non_finite});
    const Buffer rounded_there = upload(*device, rounded);
    state.resize(engine::state_slots(rule).size(), Floats(kElements, 0.0F));
    std::vector<Buffer> state_there;
    for (const Floats& slot : state) state_there.push_back(upload(*device, slot));
    for (std::size_t s = 0; s < gradients.size(); ++s) {
      std::ranges::copy(engine::moment_corrections(rule, s + 1), step.moment_corrections);
      const Buffer step_there = upload(*device, std::vector{step});
      const Buffer gradient_there = upload(*device, gradients[s]);
      const Buffer statistics_there = upload(*device, statistics.empty() ? Floats{} : statistics[s]);
      WeightUpdate task;
      task.weights = weights_there.as<float>();
      if (wants_rounded) task.rounded = rounded_there.as<engine::BFloat16>();
      for (std::size_t slot = 0; slot < state.size(); ++slot) task.state[slot] = state_there[slot].as<float>();
      task.gradient = gradient_there.as<float>();
      if (!statistics.empty()) task.statistics = statistics_there.as<float>();
      if (averaged) {
        task.references[0] = references_there[0].as<float>();
        task.references[1] = references_there[1].as<float>();
      }
      task.ranges = ranges;
      task.rule = rule;
      if (gradient_scale) task.gradient_scale = scale_there.as<float>();
      task.step = step_there.as<StepParameters>();
      task.non_finite = count_there.as<std::int32_t>();
      stream->enqueue(task, "update");
      stream->record().synchronize();
    }
    weights = download<float>(*device, weights_there.data(), weights.size());
    for (std::size_t slot = 0; slot < state.size(); ++slot) {
      state[slot] = download<float>(*device, state_there[slot].data(), kElements);
    }
    rounded = download<std::uint16_t>(*device, rounded_there.data(), rounded.size());
    non_finite = download<std::int32_t>(*device, count_there.data(), 1)[0];
  }
};

inline std::vector<std::uint16_t> rounded_bits(const Floats& values) {
  std::vector<std::uint16_t> bits;
  for (const float value : values) bits.push_back(engine::elementwise::to_bfloat16(value).bits);
  return bits;
}

// Computes the steps by their formulas, one element at a time. Elements outside the ranges do not change.
struct Expected {
  Values weights;
  Values state[2];
};
inline Expected reference_steps(const Vectors& of, bool averaged) {
  Expected expected{Values(of.weights.begin(), of.weights.end()), {}};
  ReferenceUpdate update(of.rule, kElements);
  for (const Floats& gradient : of.gradients) {
    update.begin_step();
    for (const UpdateRange& range : of.ranges) {
      const double rate = static_cast<double>(of.step.learning_rate) * range.learning_rate_multiplier;
      for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end); ++i) {
        const double w = expected.weights[i];
        const double c = averaged ? of.step.pull * (w - of.references[of.step.reference][i]) : 0.0;
        const double g = static_cast<double>(of.gradient_scale.value_or(1.0F)) * gradient[i];
        expected.weights[i] += update.move(i, w, g, rate, range.decay_multiplier) - c;
      }
    }
  }
  expected.state[0] = update.first();
  expected.state[1] = update.second();
  return expected;
}

inline Vectors with_steps(const UpdateRule& rule, unsigned steps) {
  Vectors vectors;
  vectors.rule = rule;
  vectors.gradients.clear();
  for (unsigned s = 0; s < steps; ++s) vectors.gradients.push_back(random_floats(kElements, 10 + s));
  return vectors;
}

}  // namespace arbalest::tests
