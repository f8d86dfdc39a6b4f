#include "jobs/checkpoint/learner_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "jobs/checkpoint/saved_run.h"
#include "jobs/export/safetensors.h"

namespace arbalest::jobs {

using dataflow::NamedTensor;
using scheduler::LearnerState;
using scheduler::Tensors;
using scheduler::TrainingState;

namespace {

Tensors tensors_of(const LearnerState& learner, const std::vector<std::string>& slots) {
  Tensors all = learner.weights;
  for (std::size_t slot = 0; slot < learner.optimizer.size(); ++slot) {
    for (NamedTensor tensor : learner.optimizer[slot]) {
      tensor.name = slots[slot] + "/" + tensor.name;
      all.push_back(std::move(tensor));
    }
  }
  return all;
}

void set_vectors(Tensors tensors, const std::vector<std::string>& slots, LearnerState& learner) {
  learner.weights.clear();
  learner.optimizer.assign(slots.size(), {});
  for (NamedTensor& tensor : tensors) {
    const auto slot =
        std::ranges::find_if(slots, [&](const std::string& name) { return tensor.name.starts_with(name + "/"); });
    if (slot == slots.end()) {
      learner.weights.push_back(std::move(tensor));
      continue;
    }
    tensor.name.erase(0, slot->size() + 1);
    learner.optimizer[static_cast<std::size_t>(slot - slots.begin())].push_back(std::move(tensor));
  }
}

}  // namespace

std::string learner_file(std::size_t learner) { return fmt::format("learner-{:04}.safetensors", learner); }

void put_learner(const TrainingState& training, std::size_t learner, const Write& write) {
  put_safetensors(tensors_of(training.learners.at(learner), training.optimizer_slots), kFileMetadata, write);
}

void read_learner(const Checkpoint& checkpoint, std::size_t learner, TrainingState& training) {
  set_vectors(read_tensors(checkpoint, learner_file(learner)), training.optimizer_slots, training.learners.at(learner));
}

void parse_learner(std::uint64_t size, const std::function<void(std::span<std::byte>)>& read, std::size_t learner,
                   TrainingState& training) {
  set_vectors(parse_safetensors(size, read), training.optimizer_slots, training.learners.at(learner));
}

}  // namespace arbalest::jobs
