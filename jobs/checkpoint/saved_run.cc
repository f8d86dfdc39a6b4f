#include "jobs/checkpoint/saved_run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/error.h"
#include "jobs/checkpoint/checkpoint_writer.h"
#include "jobs/checkpoint/run_state_text.h"

namespace arbalest::jobs {

using dataflow::NamedTensor;
using scheduler::LearnerState;
using scheduler::Tensors;
using scheduler::TrainingState;

namespace {

constexpr const char* kStateFile = "state.txtpb";
constexpr const char* kJobFile = "job.txtpb";
constexpr const char* kModelFile = "model.safetensors";

std::string learner_file(std::size_t learner) { return fmt::format("learner-{:04}.safetensors", learner); }

// The vectors of a TrainingState that have a file of their own. All but the first may be empty; they then have none.
struct VectorFile {
  const char* name;
  Tensors TrainingState::*vector;
};
constexpr VectorFile kVectorFiles[] = {{"center.safetensors", &TrainingState::model},
                                       {"round.safetensors", &TrainingState::center},
                                       {"center-before.safetensors", &TrainingState::center_before},
                                       {"velocity.safetensors", &TrainingState::velocity},
                                       {"average.safetensors", &TrainingState::average}};

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

LearnerState learner_of(Tensors tensors, const std::vector<std::string>& slots) {
  LearnerState learner;
  learner.optimizer.resize(slots.size());
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
  return learner;
}

const std::map<std::string, std::string> kMetadata = {{"format", "arbalest"}};

}  // namespace

void put_saved_run(const SavedRun& saved, const RunFileWriter& write) {
  const TrainingState& training = saved.training;
  write.text(kStateFile, run_state_text(saved));
  write.text(kJobFile, saved.job_text);
  write.tensors(kModelFile, saved.model);
  for (const VectorFile& file : kVectorFiles) {
    const Tensors& vector = training.*file.vector;
    if (!vector.empty()) write.tensors(file.name, vector);
  }
  for (std::size_t j = 0; j < training.learners.size(); ++j) {
    write.tensors(learner_file(j), tensors_of(training.learners[j], training.optimizer_slots));
  }
}

void take_vectors(SavedRun& saved, const RunFileReader& read) {
  saved.job_text = read.text(kJobFile);
  for (const VectorFile& file : kVectorFiles) {
    if (read.has(file.name)) saved.training.*file.vector = read.tensors(file.name);
  }
  std::vector<LearnerState>& learners = saved.training.learners;
  for (std::size_t j = 0; j < learners.size(); ++j) {
    const std::uint64_t steps = learners[j].steps;
    learners[j] = learner_of(read.tensors(learner_file(j)), saved.training.optimizer_slots);
    learners[j].steps = steps;
  }
}

std::filesystem::path write_saved_run(const std::filesystem::path& checkpoints, const SavedRun& saved) {
  CheckpointWriter writer(checkpoints, saved.training.batches);
  put_saved_run(saved, {.text = [&](const std::string& name, const std::string& text) { writer.add_text(name, text); },
                        .tensors = [&](const std::string& name,
                                       const Tensors& tensors) { writer.add_tensors(name, tensors, kMetadata); }});
  return writer.commit();
}

std::optional<double> score_of(const Checkpoint& checkpoint) {
  try {
    return read_run_state(checkpoint, kStateFile).run.present_score;
  } catch (const engine::Error&) {
    return std::nullopt;
  }
}

scheduler::Tensors read_saved_model(const Checkpoint& checkpoint) { return read_tensors(checkpoint, kModelFile); }

SavedRun read_saved_run(const Checkpoint& checkpoint) {
  SavedRun saved = read_run_state(checkpoint, kStateFile);
  take_vectors(saved, {.has = [&](const std::string& name) { return checkpoint.has(name); },
                       .text = [&](const std::string& name) { return read_text(checkpoint, name); },
                       .tensors = [&](const std::string& name) { return read_tensors(checkpoint, name); }});
  if (saved.training.model.empty() || saved.training.learners.empty()) {
    engine::fail(engine::ErrorKind::kCheckpoint, "'{}' holds no learner or no model; resume from another checkpoint",
                 checkpoint.path.string());
  }
  return saved;
}

}  // namespace arbalest::jobs
