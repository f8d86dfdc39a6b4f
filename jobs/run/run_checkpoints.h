// The checkpoints of a running job: copies its state when one is due, has it written beside the training, and tells the
// observers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "jobs/checkpoint/checkpoint_saver.h"
#include "jobs/checkpoint/saved_run.h"
#include "jobs/run/model_scores.h"
#include "jobs/run/session.h"
#include "jobs/run/trainer.h"

namespace arbalest::jobs {

// Gives a job that names no number of learners the number of the checkpoint, which was chosen for the machine that the
// run began on, or by a switch. Call before the session is opened or goes back.
void take_learners(const SavedRun& saved, JobOptions& job);

// Goes on from `saved`: sets the session's learners to its state, and `state` to its run. With the learners and devices
// of the checkpoint, training goes on as if it had never stopped. If the job asks for other learners or devices, it
// goes on as a run whose schedule changes the number there. Adds warnings to `job` if bytes may differ because program
// or processor do. Throws kCheckpoint if the checkpoint is of another dataset or model.
void resume(const SavedRun& saved, const RunOrigin& present, JobOptions& job, Session& session, RunState& state);

// Returns the program, machine and data of this run.
RunOrigin origin_of(const JobOptions& job, const Session& session, const std::string& program);

// Answers requests for a checkpoint (RunContext::save_requests) to a run that saves none, with a warning. `answered`:
// the number of requests so far that have been answered.
void refuse_save_requests(const RunContext& context, int& answered);

class RunCheckpoints {
 public:
  // All arguments must outlive it. `seconds`: the run's clock.
  RunCheckpoints(const JobOptions& job, const RunContext& context, Session& session, const ModelScores& scores,
                 const RunState& state, std::function<double()> seconds);

  // Whether a checkpoint is due at this point between two rounds.
  bool is_due() const;
  // These save a checkpoint. The scheduler must be drained. At the end of an epoch, after its evaluation, the model is
  // the evaluated one. `is_last`: the run ends here, so a checkpoint is saved in any case.
  void save_between_rounds();
  void save_after_epoch(bool is_last);
  // Writes `saved`, which the run has gone back to, once more with the present clock, log, roll-backs and best scores.
  // Waits for the write.
  void write_again(SavedRun saved);
  // Notes that best.safetensors is this model, or that there is none. Call it before the first save.
  void set_best(std::optional<BestModel> best) { saver_.set_best(best); }
  // Tells the observers of writes that have ended. `wait`: waits for the write under way.
  void report(bool wait);
  // Throws kOutOfMemory, with the reason, if the last checkpoint was not saved. Call it after report(true).
  void require_saved() const;

 private:
  RunState state_now() const;
  // `score`: of the present model, if it was just evaluated. A lack of memory is a warning.
  void save(std::optional<double> score, bool is_best);
  void copy_and_write(std::optional<double> score, bool is_best);
  // The present model, as the best one.
  BestModel best_model(double score) const { return {score, batches()}; }
  void unless_short_of_memory(const std::function<void()>& save);
  void warn(const std::string& text);
  std::uint64_t batches() const { return session_.scheduler().batches(); }

  const JobOptions& job_;
  const RunContext& context_;
  Session& session_;
  const ModelScores& scores_;
  const RunState& state_;
  std::function<double()> seconds_;
  RunOrigin origin_;
  int answered_requests_ = 0;  // of RunContext::save_requests
  std::string unsaved_;        // why the last checkpoint was not saved; "" if it was
  CheckpointSaver saver_;
};

}  // namespace arbalest::jobs
