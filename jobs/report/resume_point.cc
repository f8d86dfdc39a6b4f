#include "jobs/report/resume_point.h"

#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/error.h"
#include "jobs/checkpoint/checkpoint_saver.h"
#include "jobs/checkpoint/checkpoint_store.h"
#include "jobs/checkpoint/job_changes.h"
#include "jobs/messages/text.h"
#include "jobs/report/run_directory.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

ResumePoint read_point(const Checkpoint& checkpoint, const JobOptions& job) {
  ResumePoint point{read_saved_run(checkpoint), checkpoint.path};
  check_same_job(point.saved.job_text, job);
  return point;
}

}  // namespace

std::optional<ResumePoint> newest_resume_point(const fs::path& directory, const JobOptions& job, const Tell& warn) {
  const std::optional<Checkpoint> newest = newest_checkpoint(checkpoints_of(directory), warn);
  if (!newest) return std::nullopt;
  return read_point(*newest, job);
}

ResumePoint resume_point_at(const fs::path& path, const JobOptions& job, const Tell& warn) {
  std::error_code error;
  if (fs::is_directory(checkpoints_of(path), error)) {
    std::optional<ResumePoint> newest = newest_resume_point(path, job, warn);
    if (newest) return std::move(*newest);
    engine::fail(engine::ErrorKind::kCheckpoint, "the run '{}' has no checkpoint that can be used", path.string());
  }
  if (!fs::exists(path / kManifestFile, error)) {
    engine::fail(engine::ErrorKind::kUsage,
                 "--resume: '{}' is neither a checkpoint nor the directory of a run with one; name a directory such as "
                 "RUN/checkpoints/000000001234, or 'auto' or 'none'",
                 path.string());
  }
  return read_point(open_checkpoint(path), job);
}

Checkpoint checkpoint_named(const fs::path& directory, const std::string& name) {
  const std::vector<Checkpoint> all = list_checkpoints(checkpoints_of(directory));
  std::vector<std::string> numbers;
  for (const Checkpoint& checkpoint : all) numbers.push_back(std::to_string(checkpoint.batches));
  for (const Checkpoint& checkpoint : all) {
    const std::string number = checkpoint.path.filename().string();
    const bool is_meant = name == number || name == std::to_string(checkpoint.batches);
    if (is_meant || (name == "last" && &checkpoint == &all.back())) return open_checkpoint(checkpoint.path);
  }
  engine::fail(engine::ErrorKind::kUsage, "the run '{}' has no checkpoint '{}'; it has {}", directory.string(), name,
               all.empty() ? "none" : fmt::format("{}", fmt::join(numbers, ", ")));
}

fs::path run_of(const fs::path& path) {
  fs::path clean = path.lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();  // "run/" with a slash at the end
  std::error_code error;
  if (fs::is_directory(checkpoints_of(clean), error)) return clean;
  const fs::path checkpoints = clean.parent_path();
  if (checkpoints.filename() == "checkpoints" && fs::exists(clean, error)) {
    return checkpoints.has_parent_path() ? checkpoints.parent_path() : fs::path(".");
  }
  engine::fail(
      engine::ErrorKind::kUsage,
      "--resume: '{}' is neither a checkpoint in a run's directory nor a run with checkpoints; name one such as "
      "RUN/checkpoints/000000001234, or add --output for the directory of the run that goes on from it",
      path.string());
}

void set_later_aside(const fs::path& directory, const fs::path& point, std::uint64_t batches, const Tell& warn) {
  for (const Checkpoint& checkpoint : list_checkpoints(checkpoints_of(directory))) {
    if (checkpoint.batches <= batches) continue;
    const fs::path aside = set_aside(checkpoint.path, "superseded");
    warn(fmt::format("the run goes on from '{}', so the later checkpoint '{}' is now '{}'", point.string(),
                     checkpoint.path.string(), aside.string()));
  }
}

std::string completed_text(const fs::path& directory, const std::optional<ResumePoint>& point, const JobOptions& job) {
  std::optional<SavedSummary> summary;
  try {
    summary = read_summary(directory);
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kData) throw;  // a damaged summary is written again when the run ends
  }
  if (!summary) return "";
  // A later process of the run saved this checkpoint and was killed before its end, so the summary is an earlier one's.
  const bool has_gone_on = point && summary->mini_batches && *summary->mini_batches < point->saved.training.batches;
  const bool is_target = summary->status == "target_reached";
  if (has_gone_on) return "";
  if (!is_target && summary->status != "completed") return "";
  const bool same_target = !point || job.training.target_accuracy == target_of(point->saved.job_text);
  const int epochs = point ? point->saved.run.epochs : summary->epochs;
  if (!(is_target && same_target) && epochs < job.training.max_epochs) return "";
  return fmt::format("the run in '{}' is complete ({})", directory.string(), summary->status);
}

void check_may_begin(const fs::path& directory) {
  std::error_code error;
  if (!fs::exists(directory / kModelFile, error) && !fs::exists(directory / kSummaryFile, error)) return;
  engine::fail(engine::ErrorKind::kCheckpoint,
               "the run in '{}' has no checkpoint to go on from, and beginning anew would overwrite its model; choose "
               "another directory with --output",
               directory.string());
}

}  // namespace arbalest::jobs
