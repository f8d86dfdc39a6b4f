// The learners of one device. Their number can change; existing learners are reused.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "engine/device.h"
#include "learners/learner_group.h"

namespace arbalest::learners {

class LearnerPool {
 public:
  // Prepares the plans for `learners` learners, between which the device's cores are divided. Large memory is allocated
  // by create() only.
  //
  // `parameters`: the layouts of another pool's parameters, so that flat vectors can be summed over devices; null: the
  // device chooses. With PoolOptions::exchange the pool trains its part of `graph`, which is the whole model.
  LearnerPool(const dataflow::Graph& graph, engine::Device& device, const PoolOptions& options, int learners,
              const dataflow::ParameterLayout* parameters = nullptr);

  // Memory of the device that all learners share.
  std::size_t shared_bytes() const;
  // Memory of the device that each learner takes in teams of this size.
  std::size_t learner_bytes(int team) const { return active().learner_bytes(options_, team); }
  // Memory of the device that each of the present learners takes.
  std::size_t learner_bytes() const { return learner_bytes(team_for(count_)); }

  void create();

  // These change the number of learners.
  //
  // prepare(count, team) makes the plans and learners that `count` learners need and that do not exist. It throws
  // kOutOfMemory and then has made nothing. `team`: as for set_team(); 0: as it is.
  //
  // activate(count) makes `count` prepared learners the active ones. The caller must then set their weights and
  // optimizer state. No learner may have work under way. Previous learners stay allocated but idle, because a search
  // may come back to them.
  //
  // keep(count, team) frees all learners except the active ones and those needed for `count`.
  //
  // prepare() and keep() may run on another thread, one at a time, while the active learners train.
  void prepare(int count, int team = 0);
  void activate(int count);
  void keep(int count, int team = 0);
  // From the next activate() on, teams have the largest size up to `most` that divides the number of learners; at first
  // that is PoolOptions::team.
  void set_team(int most) noexcept { options_.team = most; }
  void release_idle() { keep(count_); }

  engine::Device& device() const noexcept { return device_; }
  // The active learners, in order of their numbers, and their teams.
  std::span<Learner* const> learners() const noexcept {
    return active().learners().first(static_cast<std::size_t>(count_));
  }
  std::span<const std::unique_ptr<Team>> teams() const noexcept {
    return active().teams().first(static_cast<std::size_t>(count_ / active().team()));
  }
  int count() const noexcept { return count_; }
  // From now on no learner has more than `most` threads; 0: as many as the cores give, which is the rule at first. Call
  // it before prepare(); learners with other threads are other learners.
  void limit_threads(int most) noexcept { most_threads_ = most; }
  // Threads of each of `count` learners. Learner counts with equal threads per learner share their learners.
  int threads_for(int count) const;
  // Learners of each team, if there are `count` learners. `team`: as for prepare().
  int team_for(int count, int team = 0) const;
  // Whether learners of one number may be among those of the other: their threads and their teams are alike.
  bool share_learners(int count, int other) const { return key_for(count) == key_for(other); }
  // The devices of a split model, which must run their mini-batches together; null if the model is not split.
  engine::ExchangeGroup* exchange() const noexcept { return options_.exchange.group.get(); }
  // The most learners that a team may have.
  int most_team() const noexcept { return options_.team; }
  int result_slots() const noexcept { return options_.learner.result_slots; }
  const engine::UpdateRule& rule() const noexcept { return options_.learner.rule; }
  // Number of vectors that each learner's optimizer keeps.
  std::size_t state_slots() const { return engine::state_slots(options_.learner.rule).size(); }
  const LearnerPlans& plans() const noexcept { return *active().plans(); }
  const LearnerOptions& learner_options() const noexcept { return options_.learner; }
  const dataflow::Plan& training_plan() const noexcept { return plans().training; }
  float* evaluation_weights() const noexcept { return evaluation_weights_.as<float>(); }
  // The evaluation weights in low precision, as of the last evaluation. Code that changes the weights must update this
  // copy. Null if the plans do not read it.
  engine::BFloat16* rounded_evaluation_weights() const noexcept {
    return rounded_evaluation_weights_.as<engine::BFloat16>();
  }

 private:
  // Learners of a group have as many threads each, and teams as large.
  struct GroupKey {
    int threads = 1;
    int team = 1;
    auto operator<=>(const GroupKey&) const = default;
  };

  LearnerGroup& active() const { return *active_; }
  GroupKey key_for(int count, int team = 0) const { return {threads_for(count), team_for(count, team)}; }
  SharedVectors shared_vectors() const;
  std::size_t evaluation_weights_bytes() const;
  std::size_t rounded_evaluation_weights_bytes() const;

  dataflow::Graph graph_;
  engine::Device& device_;
  PoolOptions options_;
  engine::Buffer evaluation_weights_;
  engine::Buffer rounded_evaluation_weights_;
  std::map<GroupKey, std::unique_ptr<LearnerGroup>> groups_;
  LearnerGroup* active_ = nullptr;
  int count_;
  int most_threads_ = 0;
};

}  // namespace arbalest::learners
