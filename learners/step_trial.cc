#include "learners/step_trial.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "dataflow/input/input_tensor.h"
#include "engine/base/error.h"
#include "engine/waiting.h"

namespace arbalest::learners {

namespace {

constexpr int kMostSteps = 5;
constexpr double kSeconds = 0.5;  // no step begins after them, but for one

// Host memory for the tensors of a mini-batch, all zeros: each example has the first class, or the number 0.
class ZeroBatch {
 public:
  ZeroBatch(const dataflow::InputDescription& description, std::int64_t examples) : examples_(examples) {
    const auto count = static_cast<std::size_t>(examples);
    for (const dataflow::TensorDescription& tensor : description.tensors) {
      memory_.emplace_back(tensor.bytes() * count / sizeof(float));
      tensors_.emplace_back(tensor, memory_.back().data(), count);
    }
  }
  dataflow::Batch batch(std::uint64_t number) const {
    return {.number = number, .tensors = tensors_, .examples = static_cast<int>(examples_)};
  }

 private:
  std::int64_t examples_;
  std::vector<std::vector<float>> memory_;  // elements have four bytes
  std::vector<dataflow::InputTensor> tensors_;
};

// Sets the team's models and optimizers to zero.
void clear(Team& team, const dataflow::ParameterLayout& parameters) {
  const std::size_t bytes = static_cast<std::size_t>(parameters.elements()) * sizeof(float);
  for (const auto& learner : team.learners()) {
    team.stream().fill_zero(learner->weights(), bytes, "clear weights");
    learner->zero_state();
  }
  engine::wait_for(team.stream());
  for (const auto& learner : team.learners()) learner->weights_were_set();
}

}  // namespace

double time_step(const LearnerPool& pool) {
  const LearnerOptions& options = pool.learner_options();
  ARBALEST_CHECK(options.training_data == nullptr && options.evaluation_data == nullptr);
  engine::Device& device = pool.device();
  const LearnerPlans& plans = pool.plans();
  const dataflow::ParameterLayout& parameters = plans.training.parameters();
  const auto elements = static_cast<std::size_t>(parameters.elements());
  const engine::Buffer weights = device.allocate(elements * sizeof(float));
  engine::Buffer rounded;
  if (plans.inference.reads_low_precision_weights()) rounded = device.allocate(elements * sizeof(engine::BFloat16));
  const TeamPlace place{.size = pool.team_for(pool.count()),
                        .threads = pool.threads_for(pool.count()),
                        .shared = {weights.as<float>(), rounded.as<engine::BFloat16>()}};
  const ZeroBatch zeros(plans.training.graph().input(), plans.training.batch());  // the team's stream reads it
  Team team(device, plans.training, plans.inference, place, options);
  clear(team, parameters);

  std::vector<dataflow::Batch> batches(team.size());
  std::vector<Ticket> tickets(batches.size());
  std::uint64_t number = 0;
  const auto seconds_of_step = [&] {
    const auto start = std::chrono::steady_clock::now();
    for (dataflow::Batch& batch : batches) batch = zeros.batch(number++);
    team.gradient(batches, {.learning_rate = 0.0F}, tickets);
    team.update(tickets, {});
    engine::wait_for(tickets[0].done);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  seconds_of_step();
  std::vector<double> seconds;
  double sum = 0.0;
  while (seconds.empty() || (std::ssize(seconds) < kMostSteps && sum < kSeconds)) {
    seconds.push_back(seconds_of_step());
    sum += seconds.back();
  }
  const auto middle = seconds.begin() + std::ssize(seconds) / 2;
  std::ranges::nth_element(seconds, middle);
  return *middle / static_cast<double>(team.size());
}

}  // namespace arbalest::learners
