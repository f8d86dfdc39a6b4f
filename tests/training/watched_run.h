// Whole runs that stop at a given point and go on, through jobs::train.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "report/resume_point.h"
#include "report/run_directory.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {

constexpr int kNever = std::numeric_limits<int>::max();

struct PartOptions {
  int looks = kNever;                                     // the run is stopped when its clock was looked at so often
  std::function<void()> at_start = {};                    // called when the run starts
  double preparation_seconds = 0.0;                       // how far the clock moves before the run starts
  double saves_after = 0.0;                               // a user asks for a checkpoint after so many epochs; 0: none
  bool stops_at_rollback = false;                         // whether it is stopped when it goes back to a checkpoint
  std::filesystem::path from = {};                        // the checkpoint of --resume; "": --resume=auto
  bool (*stops_at)(const jobs::EpochRow& row) = nullptr;  // whether it is stopped after this epoch
};

// Watches a run, and is its clock: time moves by a millisecond at each look. A run that is stopped is always stopped at
// the same mini-batch.
class Watcher final : public jobs::RunObserver {
 public:
  explicit Watcher(PartOptions options) : options_(std::move(options)), looks_(options_.looks) {}

  void on_start(const jobs::RunStart& start) override {
    resumed = start.resumed;
    time_ += std::chrono::microseconds(std::llround(1e6 * options_.preparation_seconds));
    if (options_.at_start) options_.at_start();
  }
  void on_progress(const jobs::RunProgress& progress) override {
    if (options_.saves_after > 0.0 && progress.epoch > options_.saves_after) save_requests = 1;
  }
  void on_epoch(const jobs::EpochRow& row) override {
    rows.push_back(row);
    if (options_.stops_at != nullptr && options_.stops_at(row)) signal = 15;
  }
  void on_rate_drop(const jobs::RateDropRow& row) override { drops.push_back(row); }
  void on_rollback(const jobs::RollbackRow& row) override {
    rollbacks.push_back(row);
    if (options_.stops_at_rollback) signal = 15;
  }
  void on_checkpoint(const jobs::CheckpointRow& row) override { checkpoints.push_back(row); }
  void on_warning(const std::string& text) override { warnings.push_back(text); }
  void on_finish(const jobs::RunSummary& /*summary*/) override {}

  std::chrono::steady_clock::time_point now() {
    if (--looks_ == 0) signal = 15;
    time_ += std::chrono::milliseconds(1);
    return time_;
  }

  std::atomic<int> signal{0};
  std::atomic<int> save_requests{0};
  std::optional<jobs::ResumeRow> resumed;
  std::vector<jobs::EpochRow> rows;
  std::vector<jobs::RateDropRow> drops;
  std::vector<jobs::RollbackRow> rollbacks;
  std::vector<jobs::CheckpointRow> checkpoints;
  std::vector<std::string> warnings;

 private:
  PartOptions options_;
  int looks_;
  std::chrono::steady_clock::time_point time_;
};

struct Part {
  jobs::RunSummary summary;
  std::optional<jobs::ResumeRow> resumed;
  std::vector<jobs::EpochRow> rows;
  std::vector<jobs::RateDropRow> drops;
  std::vector<jobs::RollbackRow> rollbacks;
  std::vector<jobs::CheckpointRow> checkpoints;
  std::vector<std::string> warnings;
};

// Trains in `output` as `arbalest train --output --resume` does.
inline Part train_part(const jobs::JobOptions& job, const std::filesystem::path& output,
                       const PartOptions& options = {}) {
  Watcher watcher(options);
  const auto ignore = [](const std::string&) {};
  jobs::RunDirectory directory(output, job.name, jobs::ExistingRun::kContinue);
  std::optional<jobs::ResumePoint> point;
  if (options.from.empty()) {
    point = jobs::newest_resume_point(output, job, ignore);
    directory.continue_from(point ? &point->saved : nullptr);
  } else {
    point = jobs::resume_point_at(options.from, job, ignore);
    directory.continue_from(&point->saved, [&, batches = point->saved.training.batches] {
      jobs::set_later_aside(output, options.from, batches, ignore);
    });
  }
  jobs::RunContext context;
  const char* root = std::getenv("ARBALEST_DATA");
  context.data_root = root == nullptr ? "" : root;
  context.output_directory = output.string();
  context.observers = {&directory, &watcher};
  context.stop_signal = &watcher.signal;
  context.save_requests = &watcher.save_requests;
  context.now = [&] { return watcher.now(); };
  context.measures_processor_time = false;
  context.log_bytes = [&] { return directory.log_bytes(); };
  if (point) {
    context.resumed = &point->saved;
    context.resumed_path = point->path.string();
  }
  Part part;
  const bool is_continued = point && !point->settings.empty();
  const jobs::JobOptions continued =
      is_continued ? jobs::parse_job(jobs::SourceText(job.name, job.resolved_text), point->settings) : job;
  part.summary = jobs::train(continued, context);
  part.resumed = watcher.resumed;
  part.rows = watcher.rows;
  part.drops = watcher.drops;
  part.rollbacks = watcher.rollbacks;
  part.checkpoints = watcher.checkpoints;
  part.warnings = watcher.warnings;
  return part;
}

inline Part train_part(const jobs::JobOptions& job, const std::filesystem::path& output, int looks) {
  return train_part(job, output, PartOptions{.looks = looks});
}

// A ready job, of three epochs on two learners, with more settings.
inline jobs::JobOptions short_job(const std::string& config, const std::vector<std::string>& settings) {
  std::vector<std::string> all = {"devices=cpu", "training.max_epochs=3", "training.batch_size=32",
                                  "training.target_accuracy=default", "learners.per_device.fixed=2"};
  all.insert(all.end(), settings.begin(), settings.end());
  return load(config, all);
}

}  // namespace arbalest::tests
