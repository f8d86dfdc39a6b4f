#include "report/reopen/run_location.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "checkpoint/checkpoint_saver.h"
#include "engine/base/error.h"
#include "report/run_origin_file.h"
#include "saved_model/atomic_file.h"
#include "saved_model/run_files.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

// The run in `run` was killed before its first checkpoint.
ResumePoint point_of_origin(const fs::path& run, const fs::path& origin, const JobOptions& job, const Warn& warn) {
  std::error_code error;
  if (!fs::exists(origin, error)) {
    engine::fail(engine::ErrorKind::kCheckpoint,
                 "the run in '{}' has no checkpoint, and the one that it goes on from, '{}', is gone; begin anew from "
                 "another one with --resume and another --output",
                 run.string(), origin.string());
  }
  warn(fmt::format("'{}' has no checkpoint: its run goes on from '{}' once more", run.string(), origin.string()));
  return resume_point_at(origin, job, warn, Damaged::kKeep);
}

// The process that began the run was killed while it wrote from where the run goes on.
void check_origin_is_known(const fs::path& run) {
  if (read_origin(run) || partial_files_of(run / kOriginFile).empty() || has_checkpoints(run)) return;
  engine::fail(engine::ErrorKind::kUsage,
               "the run in '{}' was to go on from a checkpoint of another run, and was killed before it recorded which "
               "one; give that again with --resume, or choose another directory with --output",
               run.string());
}

RunLocation resume_newest(const LocationOptions& options, const JobOptions& job, const Warn& warn) {
  if (options.output.empty()) {
    engine::fail(engine::ErrorKind::kUsage, "--resume=auto needs --output DIR, the directory of the run");
  }
  RunLocation place;
  check_origin_is_known(options.output);
  const std::optional<fs::path> origin = read_origin(options.output);
  place.directory = std::make_unique<RunDirectory>(options.output, job.name, ExistingRun::kContinue, origin);
  place.point = newest_resume_point(options.output, job, warn);
  place.completed = completed(options.output, place.point, job);
  if (!place.completed.text.empty()) return place;
  if (place.point) {
    place.directory->continue_from(&place.point->saved);
    return place;
  }
  check_may_begin(place.directory->path(), place.directory->has_earlier_log());
  place.directory->continue_from(nullptr);
  if (origin) {
    place.point = point_of_origin(options.output, *origin, job, warn);
  } else if (place.directory->has_earlier_log()) {
    warn(fmt::format("'{}' has no checkpoint: its run begins anew", options.output));
  }
  return place;
}

// Whether the checkpoint or run that `options` names to go on from belongs to the run in their output directory.
bool is_of_same_run(const LocationOptions& options) {
  if (options.output.empty()) return true;
  std::error_code error;
  // The directory that the checkpoint lies in, if it is one of a run.
  const fs::path around = (fs::path(options.resume) / ".." / "..").lexically_normal();
  return fs::equivalent(options.output, around, error) || fs::equivalent(options.output, options.resume, error);
}

// Whether the same command was killed before the run had a checkpoint.
bool is_repeated(const LocationOptions& options) {
  const std::optional<fs::path> origin = read_origin(options.output);
  return origin && !has_checkpoints(options.output) && is_at_or_in(*origin, full_checkpoint_path(options.resume));
}

RunLocation resume_from(const LocationOptions& options, const JobOptions& job, const Warn& warn) {
  require_point(options.resume);
  const bool is_own = is_of_same_run(options);
  if (!is_own && is_repeated(options)) return resume_newest(options, job, warn);
  const fs::path run = options.output.empty() ? run_of(options.resume) : fs::path(options.output);
  RunLocation place;
  if (!is_own) {
    place.point = resume_point_at(options.resume, job, warn, Damaged::kKeep);
    place.completed = nothing_left(*place.point, job);
    // The directory that was asked for would not be there.
    if (!place.completed.text.empty()) engine::fail(engine::ErrorKind::kUsage, "{}", place.completed.text);
    place.directory = std::make_unique<RunDirectory>(run, job.name, ExistingRun::kRefuse, place.point->path);
    place.directory->continue_from(nullptr);  // its log is empty
    return place;
  }
  place.directory = std::make_unique<RunDirectory>(run, job.name, ExistingRun::kContinue);
  place.point = resume_point_at(options.resume, job, warn, Damaged::kRename);
  place.completed = nothing_left(*place.point, job);
  if (!place.completed.text.empty()) return place;
  place.directory->continue_from(&place.point->saved, [run = place.directory->path(), path = place.point->path,
                                                       batches = place.point->saved.training.batches,
                                                       warn] { set_later_aside(run, path, batches, warn); });
  return place;
}

}  // namespace

RunLocation open_run_location(const LocationOptions& options, const JobOptions& job, const Warn& warn) {
  if (options.resume == "none") return {std::make_unique<RunDirectory>(options.output, job.name), {}};
  if (job.sparse) {
    engine::fail(engine::ErrorKind::kUsage,
                 "--resume needs checkpoints, and jobs over sparse rows, or with hogwild on ratings, save none; leave "
                 "it out and "
                 "train anew");
  }
  return options.resume == "auto" ? resume_newest(options, job, warn) : resume_from(options, job, warn);
}

}  // namespace arbalest::jobs
