#include "jobs/interchange/export/run_model.h"

#include <optional>
#include <system_error>

#include "engine/error.h"
#include "jobs/checkpoint/best_model.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/report/resume_point.h"
#include "jobs/report/run_directory.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using engine::ErrorKind;

namespace {

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

RunModel final_model(const fs::path& run) {
  if (is_there(run / kManifestFile)) return {run / kJobFile, open_checkpoint(run).path / kModelFile, ""};
  if (!is_there(run / kModelFile)) {
    engine::fail(ErrorKind::kCheckpoint,
                 "the run '{}' has no model: it is still training, or ended without one; export what it has saved so "
                 "far by --checkpoint last or --checkpoint best",
                 run.string());
  }
  const std::optional<SavedSummary> summary = read_summary(run);
  return {run / kJobFile, run / kModelFile, summary ? summary->model_sha256 : ""};
}

}  // namespace

RunModel find_run_model(const fs::path& given, const std::string& checkpoint) {
  const fs::path run = full_checkpoint_path(given);
  if (!is_there(run / kJobFile)) {
    engine::fail(ErrorKind::kUsage, "'{}' is not the directory of a run: {}", run.string(),
                 is_there(run) ? "it has no job.txtpb" : "it does not exist");
  }
  if (checkpoint.empty()) return final_model(run);
  if (checkpoint != "best") return {run / kJobFile, checkpoint_named(run, checkpoint).path / kModelFile, ""};
  if (!is_there(run / kBestModel)) {
    engine::fail(ErrorKind::kCheckpoint, "the run '{}' has no {}: no epoch has ended, or its job keeps no best model",
                 run.string(), kBestModel);
  }
  return {run / kJobFile, run / kBestModel, ""};
}

}  // namespace arbalest::jobs
