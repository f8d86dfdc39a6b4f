#include "scheduler/learner_states.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "scheduler/replicas/host_copies.h"

namespace arbalest::scheduler {

using dataflow::VectorPart;
using learners::Learner;

void save_learners(const Replicas& replicas, TrainingState& state) {
  const dataflow::BatchShare& share = replicas.share();
  std::vector<LearnerState> before =
      std::exchange(state.learners, std::vector<LearnerState>(static_cast<std::size_t>(share.all)));
  before.resize(replicas.size());
  const auto first = state.learners.begin() + share.first;
  std::ranges::move(before, first);
  const auto copy = [&](std::size_t learner, const float* vector, VectorPart part, const Tensors& parts, Tensors& to) {
    to = dataflow::whole_tensors(on_device(replicas, replicas.pool_of(learner), vector), part, parts, std::move(to));
  };
  const Tensors weights =
      gather_parts(replicas, VectorPart::kAll, [&](std::size_t p) { return replicas[p].weights(); });
  for (std::size_t j = 0; j < replicas.size(); ++j) {
    LearnerState& learner = first[static_cast<std::ptrdiff_t>(j)];
    copy(j, replicas[j].weights(), VectorPart::kAll, weights, learner.weights);
    learner.optimizer.resize(replicas[j].state().size());
    learner.steps = replicas[j].steps();
  }
  state.optimizer_slots.clear();
  for (const learners::StateSlot& slot : replicas[0].state()) state.optimizer_slots.push_back(slot.name);
  for (std::size_t slot = 0; slot < state.optimizer_slots.size(); ++slot) {
    const auto vector_of = [&](std::size_t j) { return replicas[j].state()[slot].values; };
    const Tensors parts = gather_parts(replicas, VectorPart::kTrainable, vector_of);
    for (std::size_t j = 0; j < replicas.size(); ++j) {
      copy(j, vector_of(j), VectorPart::kTrainable, parts, first[static_cast<std::ptrdiff_t>(j)].optimizer[slot]);
    }
  }
}

void restore_learners(const Replicas& replicas, const TrainingState& state) {
  for (std::size_t j = 0; j < replicas.size(); ++j) {
    Learner& learner = replicas[j];
    const std::size_t pool = replicas.pool_of(j);
    const std::size_t number = static_cast<std::size_t>(replicas.share().first) + j;
    const LearnerState& saved = state.learners[number];
    if (saved.optimizer.size() != learner.state().size()) {
      engine::fail(engine::ErrorKind::kCheckpoint,
                   "learner {} was saved with {} vectors of its optimizer; the job's has {}", number,
                   saved.optimizer.size(), learner.state().size());
    }
    to_device(replicas, pool, saved.weights, learner.weights());
    for (std::size_t slot = 0; slot < saved.optimizer.size(); ++slot) {
      to_device(replicas, pool, saved.optimizer[slot], learner.state()[slot].values, VectorPart::kTrainable);
    }
    learner.continue_from(saved.steps);
    learner.weights_were_set();
  }
}

}  // namespace arbalest::scheduler
