// Keeps the present state of a run in a file for Prometheus' node_exporter (its textfile collector).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "train/context/run_observer.h"

namespace arbalest::jobs {

// The file is replaced by renaming, so a reader finds it whole, at every event of the run and every few seconds in
// between. A file that cannot be written is told once, and the run goes on.
class PrometheusFile final : public RunObserver {
 public:
  static constexpr double kPauseSeconds = 5.0;  // between two writes that only show progress

  // Throws kUsage if the directory of `path` does not exist, or if there is a file with content that this class
  // has not written.
  explicit PrometheusFile(std::filesystem::path path);

  // `warn` is called with a warning when the file cannot be written, and when it can be written again.
  void warn_with(std::function<void(const std::string&)> warn) { warn_ = std::move(warn); }

  void on_start(const RunStart& start) override;
  void on_progress(const RunProgress& progress) override;
  void on_epoch(const EpochRow& row) override;
  void on_resize(const ResizeRow& row) override;
  void on_rate_drop(const RateDropRow& row) override;
  void on_rollback(const RollbackRow& row) override;
  void on_checkpoint(const CheckpointRow& row) override;
  void on_warning(const std::string& text) override;
  void on_finish(const RunSummary& summary) override;

 private:
  void write();
  std::string text() const;

  std::filesystem::path path_;
  std::function<void(const std::string&)> warn_;
  bool fails_ = false;
  bool begun_ = false;
  double next_write_seconds_ = 0.0;  // on the clock of the run

  RunStart start_;
  std::optional<EpochRow> last_epoch_;  // of this process
  std::optional<RunSummary> summary_;   // once the run has ended
  std::optional<RunProgress> progress_;
  double epoch_ = 0.0;
  double elapsed_seconds_ = 0.0;
  std::vector<int> learners_per_device_;
  std::optional<double> learning_rate_;
  std::optional<std::uint64_t> checkpoint_;  // mini-batches before the last one of this process
  int warnings_ = 0;
  int rollbacks_ = 0;
};

}  // namespace arbalest::jobs
