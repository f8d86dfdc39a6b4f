#include "checkpoint/saved_run.h"

#include "checkpoint/learner_files.h"
#include "checkpoint/run_state_text.h"
#include "engine/base/error.h"
#include "saved_model/run_files.h"

namespace arbalest::jobs {

using scheduler::Tensors;
using scheduler::TrainingState;

namespace {

constexpr const char* kStateFile = "state.txtpb";

// The vectors of a TrainingState that have a file of their own. All but the first may be empty; they then have none.
struct VectorFile {
  const char* name;
  Tensors TrainingState::*vector;
};
constexpr VectorFile kVectorFiles[] = {{"center.safetensors", &TrainingState::model},
                                       {"round.safetensors", &TrainingState::central},
                                       {"center-before.safetensors", &TrainingState::central_before},
                                       {"velocity.safetensors", &TrainingState::velocity},
                                       {"average.safetensors", &TrainingState::average}};

}  // namespace

void put_saved_run(const SavedRun& saved, const RunFileWriter& write) {
  const TrainingState& training = saved.training;
  write.text(kStateFile, run_state_text(saved));
  write.text(kJobFile, saved.job_text);
  write.tensors(kModelFile, saved.evaluated_model());
  for (const VectorFile& file : kVectorFiles) {
    const Tensors& vector = training.*file.vector;
    if (!vector.empty()) write.tensors(file.name, vector);
  }
}

void take_vectors(SavedRun& saved, const RunFileReader& read) {
  saved.job_text = read.text(kJobFile);
  for (const VectorFile& file : kVectorFiles) {
    if (read.has(file.name)) saved.training.*file.vector = read.tensors(file.name);
  }
}

void add_saved_run(CheckpointWriter& writer, const SavedRun& saved) {
  put_saved_run(saved, {.text = [&](const std::string& name, const std::string& text) { writer.add_text(name, text); },
                        .tensors =
                            [&](const std::string& name, const Tensors& tensors) {
                              const bool is_described = name == kModelFile && !saved.metadata.empty();
                              writer.add_tensors(name, tensors, is_described ? saved.metadata : kFileMetadata);
                            }});
  const TrainingState& training = saved.training;
  for (std::size_t j = 0; j < training.learners.size(); ++j) {
    if (training.learners[j].is_here()) {
      writer.add(learner_file(j), [&](const Write& write) { put_learner(training, j, write); });
    } else if (saved.is_from_checkpoint()) {
      writer.add_copy(saved.source, learner_file(j));
    }
  }
}

std::filesystem::path write_saved_run(const std::filesystem::path& checkpoints, const SavedRun& saved) {
  CheckpointWriter writer(checkpoints, saved.training.batches);
  add_saved_run(writer, saved);
  return writer.commit();
}

std::optional<double> score_of(const Checkpoint& checkpoint) {
  try {
    return read_run_state(checkpoint, kStateFile).run.present_score;
  } catch (const engine::Error&) {
    return std::nullopt;
  }
}

bool is_rollback_point(const Checkpoint& checkpoint) {
  try {
    return read_run_state(checkpoint, kStateFile).run.rollbacks.point == checkpoint.batches;
  } catch (const engine::Error&) {
    return false;
  }
}

std::optional<BestModel> best_model_named_by(const Checkpoint& checkpoint) {
  try {
    return read_run_state(checkpoint, kStateFile).run.best_model;
  } catch (const engine::Error&) {
    return std::nullopt;
  }
}

scheduler::Tensors read_saved_model(const Checkpoint& checkpoint) { return read_tensors(checkpoint, kModelFile); }

void read_learners(SavedRun& saved, std::size_t first, std::size_t count) {
  for (std::size_t j = first; j < first + count; ++j) read_learner(saved.source, j, saved.training);
}

SavedRun read_saved_run(const Checkpoint& checkpoint) {
  SavedRun saved = read_run_state(checkpoint, kStateFile);
  take_vectors(saved, {.has = [&](const std::string& name) { return checkpoint.has(name); },
                       .text = [&](const std::string& name) { return read_text(checkpoint, name); },
                       .tensors = [&](const std::string& name) { return read_tensors(checkpoint, name); }});
  saved.source = checkpoint;
  if (saved.training.model.empty() || saved.training.learners.empty()) {
    engine::fail(engine::ErrorKind::kCheckpoint, "'{}' holds no learner or no model; resume from another checkpoint",
                 checkpoint.path.string());
  }
  return saved;
}

}  // namespace arbalest::jobs
