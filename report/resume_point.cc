#include "report/resume_point.h"

#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_store.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/job/continuation.h"
#include "checkpoint/job/job_changes.h"
#include "checkpoint/run_end.h"
#include "engine/base/error.h"
#include "engine/base/nearest_name.h"
#include "messages/nearest_path.h"
#include "messages/text.h"
#include "report/run_directory.h"
#include "saved_model/atomic_file.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

ResumePoint read_point(const Checkpoint& checkpoint, const JobOptions& job) {
  ResumePoint point{read_saved_run(checkpoint), checkpoint.path};
  const SavedRun& saved = point.saved;
  point.settings = continuation(saved.job_text, saved.run, job);
  check_same_job(saved.job_text, saved.run, job, point.settings);
  return point;
}

// Guesses what the user meant by `path`, which is neither a checkpoint nor a run.
std::string hint_for(const fs::path& path) {
  const std::vector<std::string> words = {"auto", "none"};
  const std::string word = engine::did_you_mean(path.string(), words);
  std::error_code error;
  if (!word.empty() || fs::exists(path, error)) return word;
  return nearest_path_hint(path);
}

[[noreturn]] void fail_no_point(const fs::path& path) {
  engine::fail(engine::ErrorKind::kUsage,
               "--resume: '{}' is neither a checkpoint nor the directory of a run with one; name a directory such as "
               "RUN/checkpoints/000000001234, or 'auto' or 'none'{}",
               path.string(), hint_for(path));
}

// A damaged summary counts as none: it is written again when the run ends.
std::optional<SavedSummary> summary_or_none(const fs::path& directory) {
  try {
    return read_summary(directory);
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kData) throw;
    return std::nullopt;
  }
}

// "; train more epochs by --set training.max_epochs=20"; "" without settings.
std::string more_text(const std::vector<std::string>& settings) {
  return settings.empty() ? "" : fmt::format("; train more epochs by --set {}", fmt::join(settings, " --set "));
}

}  // namespace

std::optional<ResumePoint> newest_resume_point(const fs::path& directory, const JobOptions& job, const Warn& warn,
                                               Damaged damaged) {
  const std::optional<Checkpoint> newest = newest_checkpoint(checkpoints_of(directory), warn, damaged);
  if (!newest) return std::nullopt;
  return read_point(*newest, job);
}

fs::path full_checkpoint_path(const fs::path& given) {
  std::error_code error;
  const fs::path path = given.has_filename() ? given : given.parent_path();  // "1250/" with a slash at the end
  const std::string name = path.filename().string();
  constexpr std::size_t kMostDigits = 12;  // longer names are whole
  const bool is_number =
      !name.empty() && name.size() < kMostDigits && name.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || fs::exists(path, error)) return path;
  const fs::path full = path.parent_path() / checkpoint_name(std::stoull(name));
  return fs::exists(full, error) ? full : path;
}

void require_point(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(full_checkpoint_path(path), error) && !error) fail_no_point(path);
}

ResumePoint resume_point_at(const fs::path& given, const JobOptions& job, const Warn& warn, Damaged damaged) {
  const fs::path path = full_checkpoint_path(given);
  std::error_code error;
  if (fs::is_directory(checkpoints_of(path), error)) {
    std::optional<ResumePoint> newest = newest_resume_point(path, job, warn, damaged);
    if (newest) return std::move(*newest);
    engine::fail(engine::ErrorKind::kCheckpoint, "the run '{}' has no checkpoint that can be used", path.string());
  }
  if (!fs::exists(path / kManifestFile, error)) fail_no_point(path);
  return read_point(open_checkpoint(path), job);
}

Checkpoint checkpoint_named(const fs::path& directory, const std::string& name) {
  const std::vector<Checkpoint> all = list_checkpoints(checkpoints_of(directory));
  std::vector<std::string> numbers;
  for (const Checkpoint& checkpoint : all) numbers.push_back(std::to_string(checkpoint.batches));
  std::vector<std::string> names = numbers;
  names.insert(names.end(), {"last", "best"});
  for (const Checkpoint& checkpoint : all) {
    const std::string number = checkpoint.path.filename().string();
    const bool is_meant = name == number || name == std::to_string(checkpoint.batches);
    if (is_meant || (name == "last" && &checkpoint == &all.back())) return open_checkpoint(checkpoint.path);
  }
  engine::fail(engine::ErrorKind::kUsage,
               "the run '{}' has no checkpoint '{}'; it has {}; 'last' is the newest of them, 'best' the best model at "
               "the end of an epoch{}",
               directory.string(), name, all.empty() ? "none" : fmt::format("{}", fmt::join(numbers, ", ")),
               all.empty() ? "" : engine::did_you_mean(name, names));
}

fs::path run_of(const fs::path& path) {
  const fs::path clean = full_checkpoint_path(path.lexically_normal());
  std::error_code error;
  if (fs::is_directory(checkpoints_of(clean), error)) return clean;
  const fs::path checkpoints = clean.parent_path();
  if (checkpoints.filename() == "checkpoints" && fs::exists(clean, error)) {
    return checkpoints.has_parent_path() ? checkpoints.parent_path() : fs::path(".");
  }
  engine::fail(
      engine::ErrorKind::kUsage,
      "--resume: '{}' is neither a checkpoint in a run's directory nor a run with checkpoints; name one such as "
      "RUN/checkpoints/000000001234, or add --output for the directory of the run that goes on from it{}",
      path.string(), hint_for(path));
}

void set_later_aside(const fs::path& directory, const fs::path& point, std::uint64_t batches, const Warn& warn) {
  bool is_changed = false;
  for (const Checkpoint& checkpoint : list_checkpoints(checkpoints_of(directory))) {
    if (checkpoint.batches <= batches) continue;
    const fs::path aside = set_aside(checkpoint.path, "superseded");
    warn(fmt::format("the run goes on from '{}', so the later checkpoint '{}' is now '{}'", point.string(),
                     checkpoint.path.string(), aside.string()));
    is_changed = true;
  }
  if (is_changed) sync_directory(checkpoints_of(directory));
}

NothingLeft nothing_left(const ResumePoint& point, const JobOptions& job) {
  const RunState& state = point.saved.run;
  const std::string ended = early_end_text(job.training, state);
  const bool is_beyond = state.epochs >= job.training.max_epochs;
  if (!is_beyond && ended.empty()) return {};
  const std::vector<std::string> settings = settings_to_go_on(job.training, reached_limits(job.training, state));
  const std::string why = is_beyond
                              ? fmt::format("the checkpoint '{}' is at epoch {}, and training.max_epochs is {}",
                                            point.path.string(), state.epochs, job.training.max_epochs)
                              : fmt::format("the run of the checkpoint '{}' has ended: {}", point.path.string(), ended);
  return {fmt::format("{}: nothing is left to train{}", why, more_text(settings)), settings};
}

NothingLeft completed(const fs::path& directory, const std::optional<ResumePoint>& point, const JobOptions& job) {
  const std::optional<SavedSummary> summary = summary_or_none(directory);
  if (!summary) return {};
  // The end of a run leaves a checkpoint. If the newest one is of another point, a later process of the run went on
  // from its end or back from it, and was killed. So the summary is an earlier process's.
  const bool has_gone_on = point && summary->mini_batches && *summary->mini_batches != point->saved.training.batches;
  const bool is_target = summary->status == "target_reached";
  if (has_gone_on) return {};
  if (!is_target && summary->status != "completed") return {};
  const bool same_target = !point || job.training.target_accuracy == target_of(point->saved.job_text);
  const int epochs = point ? point->saved.run.epochs : summary->epochs;
  const std::string ended = point ? early_end_text(job.training, point->saved.run) : "";
  const bool has_reached = is_target && same_target;
  if (!has_reached && ended.empty() && epochs < job.training.max_epochs) return {};
  std::string why;
  if (!ended.empty() && !has_reached) why = ended + ": ";
  if (ended.empty() && epochs > job.training.max_epochs) {
    why = fmt::format("it has trained {}, and training.max_epochs is {}: ", counted(epochs, "epoch"),
                      job.training.max_epochs);
  }
  std::vector<std::string> settings;
  if (point) {
    ReachedLimits reached = reached_limits(job.training, point->saved.run);
    reached.target = has_reached;
    settings = settings_to_go_on(job.training, reached);
  }
  return {fmt::format("the run in '{}' is complete ({}): {}nothing is left to train{}", directory.string(),
                      summary->status, why, more_text(settings)),
          settings};
}

void check_may_begin(const fs::path& directory, bool is_run) {
  std::error_code error;
  const bool has_summary = fs::exists(directory / kSummaryFile, error);
  if (!has_summary && (is_run || !fs::exists(directory / kModelFile, error))) return;
  const std::optional<SavedSummary> summary = summary_or_none(directory);
  // A run that ends by an error saves no model, or one that may not be on the disk, without its hash.
  const bool has_failed = summary && summary->status == "failed";
  if (has_failed && (summary->model_sha256.empty() || !fs::exists(directory / kModelFile, error))) return;
  if (summary && summary->status == "diverged") {
    engine::fail(engine::ErrorKind::kCheckpoint,
                 "the run in '{}' diverged before its first checkpoint, so there is none to go back to; lower "
                 "learning_rate.base, or do what the message in its summary.json advises, and begin anew in another "
                 "directory with --output, where a job with "
                 "training.on_divergence: ROLL_BACK saves a checkpoint at its start",
                 directory.string());
  }
  engine::fail(engine::ErrorKind::kCheckpoint,
               "the run in '{}' has no checkpoint to go on from, and beginning anew would overwrite its model; choose "
               "another directory with --output",
               directory.string());
}

}  // namespace arbalest::jobs
