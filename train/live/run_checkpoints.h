// The checkpoints of a running job: copies its state when one is due, has it written beside the training, and tells the
// observers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/saved_run.h"
#include "train/context/run_context.h"
#include "train/live/live_run.h"
#include "train/processes/shared_save.h"

namespace arbalest::jobs {

// Answers requests for a checkpoint (RunContext::save_requests) to a run that saves none, with a warning. `answered`:
// the number of requests so far that have been answered.
void refuse_save_requests(const RunContext& context, int& answered);

// Each process of a run writes the state of its own learners, and rank 0 all else (processes/shared_save.h). All of
// them call the functions at the same points; is_due() and is_writing_elsewhere() are no calls of World's operations.
class RunCheckpoints {
 public:
  // The run must outlive it, and its session must be open.
  explicit RunCheckpoints(LiveRun& run);

  // Whether this process asks for a checkpoint at this point between two rounds: because a user has asked it, or, on
  // rank 0, because one is due.
  bool is_due() const;
  // These save a checkpoint. The scheduler must be drained. At the end of an epoch, after its evaluation, the model is
  // the evaluated one. `is_last`: the run ends here, so a checkpoint is saved in any case.
  void save_between_rounds();
  void save_after_epoch(bool is_last);
  // Whether this process is not rank 0, and writes its part of a checkpoint.
  bool is_writing_elsewhere() const { return shared_ && shared_->is_writing(); }
  // Gives rank 0 what the others have written. Waits for them.
  void collect_parts() {
    if (shared_) shared_->finish();
  }
  // Writes `saved`, which the run has gone back to, once more with the present clock, log, roll-backs and best scores.
  // Waits for the write.
  void write_again(SavedRun saved);
  // Notes that best.safetensors is this model, or that there is none. Call it before the first save.
  void set_best(std::optional<BestModel> best) {
    if (saver_) saver_->set_best(best);
  }
  // best.safetensors, on rank 0. Call it after report(true).
  std::optional<BestModel> best() const { return saver_ ? saver_->best() : std::nullopt; }
  // Tells the observers of writes that have ended. `wait`: waits for the write under way, of all processes.
  void report(bool wait);
  // Throws kOutOfMemory, with the reason, if the last checkpoint was not saved. Call it after report(true).
  void require_saved() const;

 private:
  RunState state_now() const;
  // Ends the save under way: there is memory for one copy of the state. Answers the requests so far.
  void begin_save();
  // Saves a checkpoint. Call begin_save() before. `score`: of the present model, if it was just evaluated.
  // `ended_epochs`: set at the end of an epoch. In a run of one process a lack of memory is a warning.
  void save(std::optional<double> score, bool is_best, std::optional<int> ended_epochs);
  // Whether a run that may roll back must save a checkpoint here.
  bool is_point_due(std::optional<int> ended_epochs) const;
  std::optional<SavedRun> copy();
  // Completes what rank 0 writes.
  void complete(SavedRun& saved, std::optional<double> score, bool is_best) const;
  // The present model, as the best one.
  BestModel best_model(double score) const { return {score, batches()}; }
  // Runs `step`. Returns false, with a warning, if memory does not suffice. If there are several processes, throws
  // then, because the others are in the same step.
  bool has_memory(const std::function<void()>& step);
  void warn(const std::string& text);
  // Returns on all processes what rank 0 says.
  bool decide(bool on_rank_0) { return run_.world.any_of(run_.leads() && on_rank_0 ? 1 : 0) != 0; }
  std::uint64_t batches() const { return run_.session->scheduler().batches(); }

  LiveRun& run_;
  RunOrigin origin_;
  int answered_requests_ = 0;             // of RunContext::save_requests
  std::string unsaved_;                   // why the last checkpoint was not saved; "" if it was
  std::optional<CheckpointSaver> saver_;  // on rank 0
  std::optional<SharedSave> shared_;      // if there are several processes; destroyed first, as the saver waits for it
};

}  // namespace arbalest::jobs
