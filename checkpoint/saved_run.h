// A run at one point, as a checkpoint holds it. The files of a checkpoint:
//   state.txtpb                the RunState (arbalest/v1/run_state.proto) and the scalars of the TrainingState
//   job.txtpb                  the job with all defaults
//   model.safetensors          the model, after an epoch as it is evaluated; `arbalest evaluate` can read it
//   center.safetensors         TrainingState::model: learners of another number go on from it
//   round.safetensors          TrainingState::central, if it differs from the model
//   center-before, velocity, average .safetensors: the vectors of TrainingState of these names, if there are any
//   learner-0000.safetensors   a learner (learner_files.h)
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/run_state.h"
#include "dataflow/input/images/pixel_rules.h"
#include "saved_model/model_description.h"
#include "scheduler/replicas/training_state.h"

namespace arbalest::jobs {

// The program, machine and data of a run. A resumed run has the same bytes only if they are the same.
struct RunOrigin {
  std::string program;    // version and commit
  std::string processor;  // instruction sets
  std::string dataset;    // dataset_fingerprint()
  std::vector<std::string> devices = {};
};

struct SavedRun {
  RunState run;
  scheduler::TrainingState training;
  scheduler::Tensors model;  // as it is evaluated; empty: as the training state has it
  RunOrigin origin;
  dataflow::PixelRules pixels = {};  // how image files are decoded
  std::string job_text;              // JobOptions::resolved_text
  Metadata metadata = {};            // of the model's file; not read back
  // The checkpoint that the run was read from. Learners whose vectors are not here lie there.
  Checkpoint source = {};

  bool is_from_checkpoint() const noexcept { return !source.path.empty(); }
  const scheduler::Tensors& evaluated_model() const noexcept {
    if (!model.empty()) return model;
    return training.average.empty() ? training.model : training.average;
  }
};

// The metadata of every file with tensors, but of the model's if SavedRun has some.
inline const Metadata kFileMetadata = {{"format", "arbalest"}};

// These store the files of a run without its learners, and get them back.
struct RunFileWriter {
  std::function<void(const std::string& name, const std::string& text)> text = {};
  std::function<void(const std::string& name, const scheduler::Tensors& tensors)> tensors = {};
};
struct RunFileReader {
  std::function<bool(const std::string& name)> has = {};
  std::function<std::string(const std::string& name)> text = {};
  std::function<scheduler::Tensors(const std::string& name)> tensors = {};
};

// Passes these files to `write`.
void put_saved_run(const SavedRun& saved, const RunFileWriter& write);
// Completes a run that has its scalars (run_state_text.h): reads all but these, SavedRun::model and the learners.
void take_vectors(SavedRun& saved, const RunFileReader& read);

// Adds the files of a run: of its learners those whose vectors are here, and copies of those in SavedRun::source.
void add_saved_run(CheckpointWriter& writer, const SavedRun& saved);
// Writes a checkpoint of them below `checkpoints` and returns its directory. Throws as CheckpointWriter does.
std::filesystem::path write_saved_run(const std::filesystem::path& checkpoints, const SavedRun& saved);

// The score of the checkpoint's model; none if it was not evaluated, or if its state cannot be read.
std::optional<double> score_of(const Checkpoint& checkpoint);

// Whether the checkpoint is a roll-back point, so that its place follows from mini-batches only, and not from time or
// from a request (RollbackState::point). False if its state cannot be read.
bool is_rollback_point(const Checkpoint& checkpoint);

// Returns what the checkpoint says about best.safetensors; none if it names none, or is damaged.
std::optional<BestModel> best_model_named_by(const Checkpoint& checkpoint);

// Reads all but SavedRun::model, which training does not go on from, and the vectors of the learners. Throws
// kCheckpoint, naming the checkpoint, if it was verified but is not one of a run, or is of another version.
SavedRun read_saved_run(const Checkpoint& checkpoint);
// Reads the vectors of `count` learners from SavedRun::source.
void read_learners(SavedRun& saved, std::size_t first, std::size_t count);
// Reads SavedRun::model.
scheduler::Tensors read_saved_model(const Checkpoint& checkpoint);

}  // namespace arbalest::jobs
