// The learners of one device: as many as are asked for, from those that exist already and new ones.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "engine/device.h"
#include "learners/learner_group.h"

namespace arbalest::learners {

class LearnerPool {
 public:
  // Prepares the plans of `learners` learners, between whom the device's cores are divided. All that takes much memory
  // comes with create().
  // `parameters`: the layouts of another pool's parameters, so that flat vectors can be summed
  // over devices; null: the device chooses.
  LearnerPool(const dataflow::Graph& graph, engine::Device& device, const PoolOptions& options, int learners,
              const dataflow::ParameterLayout* parameters = nullptr);

  // What all of them together, and what each of them takes of the device's memory.
  std::size_t shared_bytes() const;
  std::size_t learner_bytes() const { return active().learner_bytes(options_); }

  void create();

  // Another number of learners. prepare() makes the plans and learners that `count` of them need and that do not exist;
  // throws kOutOfMemory, and has made nothing then. activate() makes `count` prepared ones the present ones, whose
  // weights and optimizer state are to be set; none may have work under way. Those before stay, idle, as a search may
  // come back to them, until keep(), which frees all but the present ones and those that `count` of them are. prepare()
  // and keep() may run on another thread, one at a time, while the present learners train.
  void prepare(int count);
  void activate(int count);
  void keep(int count);
  void release_idle() { keep(count_); }

  engine::Device& device() const noexcept { return device_; }
  // The present ones, in order of their numbers.
  std::span<const std::unique_ptr<Learner>> learners() const noexcept {
    return active().learners().first(static_cast<std::size_t>(count_));
  }
  int count() const noexcept { return count_; }
  int result_slots() const noexcept { return options_.result_slots; }
  // Vectors that each learner's optimizer keeps.
  std::size_t state_slots() const { return engine::state_slots(options_.rule).size(); }
  const dataflow::Plan& training_plan() const noexcept { return active().training_plan(); }
  float* evaluation_weights() const noexcept { return evaluation_weights_.as<float>(); }
  // The same in low precision as of the last evaluation, for whoever evaluates to keep up to date; null where the plans
  // do not read it.
  engine::BFloat16* rounded_evaluation_weights() const noexcept {
    return rounded_evaluation_weights_.as<engine::BFloat16>();
  }

 private:
  int threads_for(int count) const;
  LearnerGroup& active() const { return *active_; }
  SharedVectors shared_vectors() const;
  std::size_t evaluation_weights_bytes() const;
  std::size_t rounded_evaluation_weights_bytes() const;

  dataflow::Graph graph_;
  engine::Device& device_;
  PoolOptions options_;
  engine::Buffer evaluation_weights_;
  engine::Buffer rounded_evaluation_weights_;
  std::map<int, std::unique_ptr<LearnerGroup>> groups_;  // by threads of a learner
  LearnerGroup* active_ = nullptr;
  int count_;
};

}  // namespace arbalest::learners
