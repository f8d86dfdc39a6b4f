// Decides when a run's checkpoints are due, and writes them beside the training, one at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/saved_run.h"
#include "checkpoint/score_order.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// The end of a save.
struct SaveResult {
  std::uint64_t batches = 0;               // mini-batches trained before the checkpoint
  bool is_checkpoint = false;              // false: only the best model was written
  std::filesystem::path path;              // directory of the checkpoint; "" if it failed
  std::string failure;                     // why it failed; the checkpoints before it are intact
  std::vector<std::string> warnings = {};  // about best.safetensors and other checkpoints
  std::optional<BestModel> best = {};      // the model that became best.safetensors
  std::optional<BestModel> named = {};     // the best model that the checkpoint names
};

// Adds the files of other processes to a checkpoint that has all files of this one. `is_lost`: those have failed, so
// nothing needs to be added. Blocks until the other processes have written.
using AddFiles = std::function<void(CheckpointWriter& writer, bool is_lost)>;

// Whether a roll-back point is due after so many mini-batches, `newest` of which lie before the newest point: those of
// every_batches and every_epochs, or else the ends of epochs. So the place that a run goes back to never depends on
// time. `ended_epochs`: set at the end of an epoch.
bool is_rollback_point_due(const CheckpointOptions& options, std::uint64_t batches, std::uint64_t newest,
                           std::optional<int> ended_epochs);

class CheckpointSaver {
 public:
  // Checkpoints go below `run_directory`/checkpoints. `from`: position from which the run goes on; the first interval
  // begins there. `best`: best.safetensors, if an earlier process of the run wrote that; the checkpoint names it.
  // `keeps_points`: the newest `keep_last` roll-back points are kept, too.
  CheckpointSaver(const std::filesystem::path& run_directory, const CheckpointOptions& options, ScoreOrder order,
                  std::uint64_t from_batches, double from_seconds, std::optional<BestModel> best,
                  bool keeps_points = false);
  ~CheckpointSaver();  // waits for a save under way
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Whether a checkpoint is due after so many mini-batches and seconds of the run.
  // `ended_epochs`: set at the end of an epoch.
  bool is_due(std::uint64_t batches, double seconds, std::optional<int> ended_epochs) const;
  // Whether there is a checkpoint of this point already.
  bool holds(std::uint64_t batches) const;
  // Whether a model with this score is the best so far, so that save_best() would keep it.
  bool is_best(double score) const;
  // best.safetensors once the save under way has ended well; none if there is no such file.
  std::optional<BestModel> best() const { return best_written_ ? best_written_ : best_; }
  // Notes that best.safetensors is this model, or that there is none. No save may be under way.
  void set_best(std::optional<BestModel> best) { best_ = named_ = best; }

  // Counts a save that could not begin, so that the next one is due an interval later.
  void skip(std::uint64_t batches, double seconds);
  // Both wait for the save under way and then write on a thread of their own.
  // `is_best`: the model also becomes best.safetensors, as RunState::best_model describes it.
  // `writer`: a checkpoint that begin() has begun; `add_files`: adds files of other processes to it.
  void save(SavedRun saved, double seconds, bool is_best, std::unique_ptr<CheckpointWriter> writer = nullptr,
            AddFiles add_files = {});
  // The state that the last save() has written: memory for the next one. No save may be under way.
  scheduler::TrainingState take_memory();
  // Begins a checkpoint whose files other processes write, too, with the thread that save() will use. Returns null if
  // that fails; the next result says why.
  std::unique_ptr<CheckpointWriter> begin(std::uint64_t batches, double seconds);
  // Writes best.safetensors only. `metadata`: the model's description.
  void save_best(scheduler::Tensors model, const BestModel& best, Metadata metadata = {});

  // Returns the result of a save that has ended; none if there is nothing new. `wait`: waits for the save under way.
  std::optional<SaveResult> take_result(bool wait);

 private:
  // Runs `write`, which fills in the result, on the thread that begin() has started, or on one of its own. If no thread
  // can be started, it runs here. No save may be under way.
  void start(std::uint64_t batches, const std::function<void(SaveResult&)>& write);
  std::filesystem::path write_run(const SavedRun& saved, std::unique_ptr<CheckpointWriter> writer,
                                  const AddFiles& add_files) const;
  void write_best(const scheduler::Tensors& model, const BestModel& best, const Metadata& metadata,
                  SaveResult& result) const;
  void keep(SaveResult result);
  bool is_writing() const;
  void collect();
  void retain(SaveResult& result);

  std::filesystem::path run_directory_;
  std::filesystem::path checkpoints_;
  CheckpointOptions options_;
  ScoreOrder order_;
  bool keeps_points_;
  std::uint64_t last_batches_;
  double last_seconds_;
  std::optional<BestModel> best_;          // best.safetensors
  std::optional<BestModel> named_;         // the best model that the last whole checkpoint names
  std::optional<BestModel> best_written_;  // the model that the save under way makes best.safetensors
  std::shared_ptr<SavedRun> written_;      // by the last save(), or by that under way
  std::future<SaveResult> writing_;
  std::optional<std::promise<std::function<SaveResult()>>> begun_;  // gives the thread of begin() its work
  std::vector<SaveResult> results_;                                 // not taken yet
  std::set<std::string> told_;  // warnings about other checkpoints, which each save would repeat
};

// The directory of a run's checkpoints.
std::filesystem::path checkpoints_of(const std::filesystem::path& run_directory);
// Whether it is there and holds a checkpoint.
bool has_checkpoints(const std::filesystem::path& run_directory);

}  // namespace arbalest::jobs
