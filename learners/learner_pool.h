// The learners of one device, with what they share: plans, and the weights that evaluation reads.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dataflow/plan.h"
#include "engine/device.h"
#include "learners/learner.h"

namespace arbalest::learners {

struct PoolOptions {
  int learners = 1;
  int first_number = 0;    // of the first learner, over all devices
  std::int64_t batch = 1;  // training examples of a mini-batch
  std::int64_t evaluation_batch = 1;
  engine::Precision precision = engine::Precision::kFloat32;
  int result_slots = 4;
  engine::UpdateRule rule = {};
  std::optional<float> clip_gradient_norm = {};  // the largest norm that a learner's gradient keeps
  // Parameters without weight decay.
  std::vector<dataflow::ParameterKind> without_decay = {};
  // On the pool's device: what mini-batches of training and of evaluation are gathered from; null: batches bring
  // images.
  const dataflow::ResidentData* training_data = nullptr;
  const dataflow::ResidentData* evaluation_data = nullptr;
};

class LearnerPool {
 public:
  // Prepares the plans. All that takes much memory comes with create(), once the central model's place is known.
  // `parameters`: the layouts of another pool's parameters, so that flat vectors can be summed over devices; null: the
  // device chooses.
  LearnerPool(const dataflow::Graph& graph, engine::Device& device, const PoolOptions& options,
              const dataflow::ParameterLayout* parameters = nullptr);

  // What all of them together, and what each of them takes of the device's memory.
  std::size_t shared_bytes() const;
  std::size_t learner_bytes() const;

  // `central`: the device's two buffers of the central model, both null without averaging.
  void create(const float* const (&central)[2]);

  engine::Device& device() const noexcept { return device_; }
  const PoolOptions& options() const noexcept { return options_; }
  const dataflow::Plan& training_plan() const noexcept { return training_; }
  std::span<const std::unique_ptr<Learner>> learners() const noexcept { return learners_; }
  float* evaluation_weights() const noexcept { return evaluation_weights_.as<float>(); }
  // The same in low precision, for whoever writes them to keep up to date; null where the plans do not read it.
  engine::BFloat16* rounded_evaluation_weights() const noexcept {
    return rounded_evaluation_weights_.as<engine::BFloat16>();
  }

 private:
  std::size_t evaluation_weights_bytes() const;
  std::size_t rounded_evaluation_weights_bytes() const;

  engine::Device& device_;
  PoolOptions options_;
  int threads_;
  dataflow::Plan training_;
  dataflow::Plan inference_;
  engine::Buffer evaluation_weights_;
  engine::Buffer rounded_evaluation_weights_;
  std::vector<std::unique_ptr<Learner>> learners_;
};

}  // namespace arbalest::learners
