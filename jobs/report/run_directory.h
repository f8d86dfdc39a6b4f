// What a run leaves behind: job.txtpb, metrics.jsonl and summary.json (the Trainer adds model.safetensors).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "jobs/options/job_options.h"
#include "jobs/report/metrics_log.h"
#include "jobs/run/run_observer.h"

namespace arbalest::jobs {

inline constexpr const char* kJobFile = "job.txtpb";
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kSummaryFile = "summary.json";

// Files appear when the run begins; a run that fails before (its dataset is missing) leaves nothing behind, and the
// same command may be given again. Callbacks throw as fail_write does (jobs/export/atomic_file.h).
class RunDirectory final : public RunObserver {
 public:
  // Makes `path` with its parents, or "runs/<job>-<time>" if it is "", and tries that files can be written there.
  // Throws ErrorKind::kUsage if they cannot be, or if the directory holds a run already: that one is never
  // overwritten. Throws ErrorKind::kOutOfMemory if the disk is full.
  RunDirectory(std::filesystem::path path, const JobOptions& job);
  ~RunDirectory() override;

  const std::filesystem::path& path() const noexcept { return path_; }

  void on_start(const RunStart& start) override;
  void on_progress(const RunProgress& progress) override;
  void on_epoch(const EpochRow& row) override;
  void on_finish(const RunSummary& summary) override;

 private:
  std::filesystem::path path_;
  bool created_ = false;
  std::string job_text_;
  std::unique_ptr<MetricsLog> metrics_;  // from the start of the run
};

// The hash of the model that the run in `directory` saved, from its summary.json; "" if it does not tell: the run was
// cut short. Throws ErrorKind::kData if the file is damaged.
std::string saved_model_sha256(const std::filesystem::path& directory);

}  // namespace arbalest::jobs
