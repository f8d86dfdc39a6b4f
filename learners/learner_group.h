// The learners of one device whose teams have the same size and the same number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataflow/memory/plan.h"
#include "engine/device.h"
#include "learners/learner.h"
#include "learners/team.h"

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
  int team = 1;  // learners of a team, at most (LearnerPool::team_for)
  LearnerOptions learner = {};
};

// The plans that learners with the same number of threads share.
struct LearnerPlans {
  // `team`: learners of the teams that will mostly run them. `parameters`: layouts of existing flat vectors; null: the
  // device chooses.
  LearnerPlans(const dataflow::Graph& graph, engine::Device& device, const PoolOptions& options, int threads, int team,
               const dataflow::ParameterLayout* parameters);

  dataflow::Plan training;
  dataflow::Plan inference;
};

class LearnerGroup {
 public:
  LearnerGroup(engine::Device& device, std::shared_ptr<const LearnerPlans> plans, int threads, int team)
      : device_(device), plans_(std::move(plans)), threads_(threads), team_(team) {}

  const std::shared_ptr<const LearnerPlans>& plans() const noexcept { return plans_; }
  // Memory of the device that each learner takes in teams of this size, with its part of what the team takes.
  std::size_t learner_bytes(const PoolOptions& options, int team) const;

  // Creates teams until there are `count` learners, a multiple of the team's size. Throws kOutOfMemory and creates
  // none.
  void grow(int count, const PoolOptions& options, const SharedVectors& shared);
  // Keeps the teams of the first `count` learners; the others must be idle.
  void shrink(int count);
  std::span<Learner* const> learners() const noexcept { return learners_; }
  std::span<const std::unique_ptr<Team>> teams() const noexcept { return teams_; }
  int team() const noexcept { return team_; }

 private:
  engine::Device& device_;
  std::shared_ptr<const LearnerPlans> plans_;
  int threads_;
  int team_;
  std::vector<std::unique_ptr<Team>> teams_;
  std::vector<Learner*> learners_;  // of all teams, by number
};

}  // namespace arbalest::learners
