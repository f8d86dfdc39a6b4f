// The files that a run leaves: job.txtpb, metrics.jsonl and summary.json (the Trainer adds model.safetensors), and
// replay.txtpb if the number of learners was tuned, and kernels.txtpb if GPUs had a choice of kernels.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "options/job_options.h"
#include "report/metrics_log.h"
#include "report/output_directory.h"
#include "report/run_claim.h"
#include "report/run_lock.h"
#include "report/tensorboard/tensorboard_log.h"
#include "saved_model/run_files.h"
#include "train/context/run_observer.h"

namespace arbalest::jobs {

class Trace;
struct SavedRun;

// A run that fails before it begins (for example, its dataset is missing) leaves nothing behind, so the same command
// can be repeated. It begins when job.txtpb and the first line of its log are written: on_start() throws kOutOfMemory
// if the disk is full, and kUsage if they cannot be written there. Later the model matters more than the log: if a line
// cannot be written, such as on a full disk, the run is told once and goes on; the line is written as soon as that
// works again. on_finish() throws if something is still missing then. All callbacks throw RunGone if the directory is
// gone.
class RunDirectory final : public RunObserver {
 public:
  // Creates `path` with its parents, or "runs/<job>-<time>" if it is "", and claims it with an empty metrics.jsonl.
  // Throws ErrorKind::kUsage if no file can be written there, or if the directory already holds a run, even one that
  // has just begun; such a run is never touched. Throws it also for a folder of runs. Throws ErrorKind::kOutOfMemory if
  // the disk is full.
  // kContinue: a directory with a run is no error, unless a process is training there; call continue_from() then.
  // `origin`: the checkpoint of another run that this one goes on from until it has one of its own. In a new directory
  // it is written before all else, and always before partial files are removed, one of which may have named it.
  RunDirectory(const std::filesystem::path& path, const std::string& job_name,
               ExistingRun existing = ExistingRun::kRefuse,
               const std::optional<std::filesystem::path>& origin = std::nullopt);
  ~RunDirectory() override;

  // The run will go on from `saved`: when it starts, its log is cut to its length at that point. Null: the run begins
  // anew, with an empty log.
  // `at_start` is called then.
  void continue_from(const SavedRun* saved, std::function<void()> at_start = {});
  // Whether an earlier process has left a log here.
  bool has_earlier_log() const noexcept { return existed_; }
  // Bytes of metrics.jsonl so far, all of them on disk, or waiting if the disk is full.
  std::uint64_t log_bytes();
  // `warn` is called with a warning when a file cannot be written, and when it can be written again.
  void warn_with(std::function<void(const std::string&)> warn) { warn_ = std::move(warn); }

  // Adds the results of `trace` to each epoch. The trace must be an observer called before this one.
  void follow(const Trace& trace) { trace_ = &trace; }

  const std::filesystem::path& path() const noexcept { return directory_.path(); }

  void on_start(const RunStart& start) override;
  void on_progress(const RunProgress& progress) override;
  void on_epoch(const EpochRow& row) override;
  void on_resize(const ResizeRow& row) override;
  void on_switch(const SwitchRow& row) override;
  void on_save() override;
  void on_rate_drop(const RateDropRow& row) override;
  void on_rollback(const RollbackRow& row) override;
  void on_checkpoint(const CheckpointRow& row) override;
  void on_warning(const std::string& text) override;
  void on_finish(const RunSummary& summary) override;

 private:
  void claim(ExistingRun existing, const std::optional<std::filesystem::path>& origin);
  void cut_log();
  void begin_files(const RunStart& start);
  void log(const char* event, const nlohmann::ordered_json& row);
  // Runs `write`. An error is told and kept in failure_.
  void attempt(const std::function<void()>& write);
  void write_replay();
  void remove(const char* file) const;

  OutputDirectory directory_;
  std::unique_ptr<MetricsLog> metrics_;
  TensorBoardLog tensorboard_;
  bool begun_ = false;
  bool existed_ = false;          // whether metrics.jsonl was there before this process
  std::uint64_t kept_bytes_ = 0;  // of metrics.jsonl, if it was
  std::function<void()> at_start_;
  const Trace* trace_ = nullptr;
  std::string job_text_;
  bool is_tuned_ = false;
  std::function<void(const std::string&)> warn_;
  std::optional<engine::Error> failure_;  // the last one, until everything is written
  bool replay_waits_ = false;             // whether replay.txtpb could not be written
  bool writes_replay_ = false;            // whether job.txtpb alone does not tell the numbers of learners
  std::vector<LearnerStep> learners_;     // learners that the run had
  int team_ = 0;                          // the present size of their teams, if it is tuned
};

// The data root of the run in `directory`, an absolute path; "" if its metrics.jsonl does not tell.
std::string saved_data_root(const std::filesystem::path& directory);

// The part of a summary.json about the saved model.
struct SavedSummary {
  std::string status;  // "completed"; "" if the file does not tell
  int epochs = 0;
  std::optional<std::uint64_t> mini_batches;  // none in files of earlier versions
  std::string model_sha256;
  std::optional<std::uint64_t> best_batches;  // mini-batches trained before best.safetensors, if there was one
  std::string best_sha256;
  Scores test;  // without those that the run could not measure; empty without such a set
  Scores validation;
};

// Returns nothing if `directory` has no summary.json: the run was cut short. Throws ErrorKind::kData if the file is
// damaged.
std::optional<SavedSummary> read_summary(const std::filesystem::path& directory);

}  // namespace arbalest::jobs
