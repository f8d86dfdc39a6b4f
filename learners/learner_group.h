// The learners of one device whose streams have the same number of threads, and the plans that they share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dataflow/memory/plan.h"
#include "engine/device.h"
#include "learners/learner.h"

namespace arbalest::learners {

// Options of a device's plans and learners.
struct PoolOptions {
  std::int64_t batch = 1;  // training examples per mini-batch
  std::int64_t evaluation_batch = 1;
  engine::Precision precision = engine::Precision::kFloat32;
  // Parameters without weight decay.
  std::vector<dataflow::ParameterKind> without_decay = {};
  // The device's place among those of a split model; its group is null if the model is not split.
  engine::ExchangeMember exchange = {};
  LearnerOptions learner = {};
};

class LearnerGroup {
 public:
  // Prepares the plans. `parameters`: layouts of existing flat vectors; null: the device chooses.
  LearnerGroup(const dataflow::Graph& graph, engine::Device& device, const PoolOptions& options, int threads,
               const dataflow::ParameterLayout* parameters);

  const dataflow::Plan& training_plan() const noexcept { return training_; }
  const dataflow::Plan& inference_plan() const noexcept { return inference_; }
  // Memory of the device that each learner takes.
  std::size_t learner_bytes(const PoolOptions& options) const;

  // Creates learners until there are `count`. Throws kOutOfMemory and creates none.
  void grow(int count, const PoolOptions& options, const SharedVectors& shared);
  // Keeps the first `count` learners; the others must be idle.
  void shrink(int count) { learners_.resize(std::min(learners_.size(), static_cast<std::size_t>(count))); }
  std::span<const std::unique_ptr<Learner>> learners() const noexcept { return learners_; }

 private:
  engine::Device& device_;
  int threads_;
  dataflow::Plan training_;
  dataflow::Plan inference_;
  std::vector<std::unique_ptr<Learner>> learners_;
};

}  // namespace arbalest::learners
