#include "checkpoint/learner_files.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "checkpoint/saved_run.h"
#include "saved_model/safetensors.h"

namespace arbalest::jobs {

using dataflow::NamedTensor;
using scheduler::LearnerState;
using scheduler::Tensors;
using scheduler::TrainingState;

namespace {

constexpr const char* kWeights = "weights";

// The optimizer's vectors have their name before that of the parameter: "momentum/conv1.weight". A parameter whose own
// name begins like that gets "weights/" before it.
bool begins_with(const std::string& name, const std::string& vector) { return name.starts_with(vector + "/"); }

bool is_ambiguous(const std::string& name, const std::vector<std::string>& slots) {
  return begins_with(name, kWeights) ||
         std::ranges::any_of(slots, [&](const std::string& slot) { return begins_with(name, slot); });
}

Tensors tensors_of(const LearnerState& learner, const std::vector<std::string>& slots) {
  Tensors all = learner.weights;
  for (NamedTensor& tensor : all) {
    if (is_ambiguous(tensor.name, slots)) tensor.name = fmt::format("{}/{}", kWeights, tensor.name);
  }
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
        std::ranges::find_if(slots, [&](const std::string& name) { return begins_with(tensor.name, name); });
    if (slot == slots.end()) {
      if (begins_with(tensor.name, kWeights)) tensor.name.erase(0, std::string_view(kWeights).size() + 1);
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
