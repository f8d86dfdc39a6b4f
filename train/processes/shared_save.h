// Saves a checkpoint of several processes: each writes the files of its own learners.
//
// A save has three steps. All processes call begin() and finish(), which are calls of World's operations, between two
// iterations. Between them each process has a thread that writes its files into the directory that rank 0 has made, or
// sends them to rank 0. A thread of rank 0 collects the files, and writes the manifest last.
#pragma once

#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_writer.h"
#include "engine/process/world.h"
#include "scheduler/replicas/training_state.h"
#include "train/processes/shared_view.h"

namespace arbalest::jobs {

class SharedSave {
 public:
  // Finds out which processes see the directory of the run.
  SharedSave(engine::process::World& world, const std::filesystem::path& run_directory);
  // Waits for the thread of this process. A save that has not ended fails.
  ~SharedSave();
  SharedSave(const SharedSave&) = delete;
  SharedSave& operator=(const SharedSave&) = delete;

  const SharedView& view() const noexcept { return view_; }

  // Begins the save of `training`, the state of this process. Rank 0 gives the checkpoint that it has begun, or null if
  // that has failed; then nothing happens, and none is returned. On rank 0 the state gets the steps of all learners,
  // and the thread that writes must call the result. The other ranks may forget the state.
  std::optional<AddFiles> begin(scheduler::TrainingState& training, CheckpointWriter* writer);
  // Whether the thread of this process, of another rank than 0, has not ended.
  bool is_writing() const;
  // Ends the save that has begun, if any: waits for all threads but that of rank 0, and tells rank 0 what they have
  // written.
  void finish();

 private:
  // The files that a rank has written, or why it has not.
  struct Part {
    std::vector<ManifestEntry> files;
    std::optional<engine::Error> failure;
  };
  struct Wanted;  // what the thread of rank 0 waits for

  static Part write(const std::filesystem::path& directory, const scheduler::TrainingState& training);
  static Part send(engine::process::World& world, const scheduler::TrainingState& training);
  static void add_files(const Wanted& wanted, CheckpointWriter& writer, bool is_lost);
  static std::string pack(const Part& part);
  static Part unpack(const std::string& bytes);
  void start(scheduler::TrainingState training, const std::string& name);

  engine::process::World& world_;
  const std::filesystem::path checkpoints_;
  const SharedView view_;
  bool has_begun_ = false;
  std::future<Part> writing_;                             // on other ranks than 0
  std::optional<std::promise<std::vector<Part>>> parts_;  // on rank 0: by rank
};

}  // namespace arbalest::jobs
