#include "train/divergence/rollback_point.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "checkpoint/checkpoint_store.h"
#include "checkpoint/learner_files.h"

namespace arbalest::jobs {

namespace {

bool are_finite(const scheduler::Tensors& tensors) {
  return std::ranges::all_of(tensors, [](const dataflow::NamedTensor& tensor) {
    return std::ranges::all_of(tensor.values, [](float value) { return std::isfinite(value); });
  });
}

bool is_finite(const scheduler::LearnerState& learner) {
  return are_finite(learner.weights) && std::ranges::all_of(learner.optimizer, are_finite);
}

// Reads the learner, and forgets it.
bool has_finite_learner(const SavedRun& saved, std::size_t number) {
  scheduler::TrainingState training{.optimizer_slots = saved.training.optimizer_slots, .learners = {}};
  training.learners.resize(number + 1);
  read_learner(saved.source, number, training);
  return is_finite(training.learners[number]);
}

bool are_beyond(std::uint64_t batches, const RollbackLimits& limits) {
  return batches > limits.before || batches == limits.last;
}

// Returns why no run goes back to this checkpoint, the newest of `all`; "" if one may. Where there is no earlier place
// to go back to, the run goes back here again. A run without points goes back to any checkpoint.
std::string unfitness(const SavedRun& saved, const RollbackLimits& limits, const std::vector<Checkpoint>& all) {
  const std::uint64_t batches = saved.training.batches;
  const bool has_points = std::ranges::any_of(all, is_rollback_point);
  if (has_points && saved.run.rollbacks.point != batches) return "is later than the point that the run goes back to";
  const bool has_earlier = std::ranges::any_of(all, [&](const Checkpoint& checkpoint) {
    return checkpoint.batches < batches && (!has_points || is_rollback_point(checkpoint));
  });
  if (has_earlier && (are_beyond(batches, limits) || saved.training.losses.high_windows > 0)) {
    return "leads to a divergence again, or was saved while the loss rose";
  }
  return "";
}

}  // namespace

bool is_finite(const SavedRun& saved) {
  const scheduler::TrainingState& training = saved.training;
  for (const auto* vector : {&saved.model, &training.model, &training.central, &training.central_before,
                             &training.velocity, &training.average}) {
    if (!are_finite(*vector)) return false;
  }
  for (std::size_t j = 0; j < training.learners.size(); ++j) {
    if (training.learners[j].is_here() ? !is_finite(training.learners[j]) : !has_finite_learner(saved, j)) return false;
  }
  return std::isfinite(saved.run.epoch.sums.loss()) && std::isfinite(training.losses.loss_sum);
}

std::optional<RollbackPoint> find_rollback_point(const std::filesystem::path& checkpoints, const RollbackLimits& limits,
                                                 const std::function<void(const std::string&)>& warn) {
  while (const std::optional<Checkpoint> newest = newest_checkpoint(checkpoints, warn)) {
    RollbackPoint point{read_saved_run(*newest), newest->path};
    point.saved.model = read_saved_model(*newest);
    const std::vector<Checkpoint> all = list_checkpoints(checkpoints);
    const bool finite = is_finite(point.saved);
    std::string unfit = "holds numbers that are not finite";
    if (finite) unfit = unfitness(point.saved, limits, all);
    if (unfit.empty()) return point;
    const std::filesystem::path aside = set_aside(newest->path, finite ? "diverged" : "not-finite");
    warn(fmt::format("the checkpoint '{}' {}, so no run goes on from it; it is now '{}'", newest->path.string(), unfit,
                     aside.filename().string()));
  }
  return std::nullopt;
}

}  // namespace arbalest::jobs
