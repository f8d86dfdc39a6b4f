// Finds the checkpoint that a run goes on from, as `arbalest train --resume` asks for.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_store.h"
#include "checkpoint/saved_run.h"
#include "options/job_options.h"

namespace arbalest::jobs {

struct ResumePoint {
  SavedRun saved;
  std::filesystem::path path;  // directory of the checkpoint
  // The settings with which the job must be read to go on from here (checkpoint/job/continuation.h).
  std::vector<std::string> settings = {};
};

using Warn = std::function<void(const std::string&)>;

// The newest checkpoint of the run in `directory` that verifies; none if the run has none, so that it begins anew.
// Damaged checkpoints are renamed and told through `warn`. Throws kCheckpoint if the job has changed (check_same_job).
std::optional<ResumePoint> newest_resume_point(const std::filesystem::path& directory, const JobOptions& job,
                                               const Warn& warn, Damaged damaged = Damaged::kRename);

// The checkpoint in `path`, or the newest one if `path` is the directory of a run. Throws kUsage if `path` is neither,
// kCheckpoint if the checkpoint cannot be used.
// `damaged`: what happens to damaged checkpoints that are passed over; another run's directory stays as it is.
ResumePoint resume_point_at(const std::filesystem::path& path, const JobOptions& job, const Warn& warn,
                            Damaged damaged = Damaged::kRename);

// The checkpoint of the run in `directory` that `name` names: "last", or its number, such as "1234". Throws kUsage if
// there is none, kCheckpoint if it cannot be used.
Checkpoint checkpoint_named(const std::filesystem::path& directory, const std::string& name);

// Throws kUsage, with what may be meant, if there is nothing at `path`.
void require_point(const std::filesystem::path& path);

// `path`, or the checkpoint that it abbreviates: RUN/checkpoints/1234 for RUN/checkpoints/000000001234.
std::filesystem::path full_checkpoint_path(const std::filesystem::path& path);

// The directory of the run that `path`, a checkpoint or the directory of a run, belongs to. Throws kUsage if it is
// neither, or a checkpoint that lies outside a run.
std::filesystem::path run_of(const std::filesystem::path& path);

// Renames the checkpoints of the run in `directory` that have more than `batches` mini-batches, those of `point`,
// because the run will have another history from there on. Tells each.
void set_later_aside(const std::filesystem::path& directory, const std::filesystem::path& point, std::uint64_t batches,
                     const Warn& warn);

// Throws kCheckpoint if a run that begins anew in `directory` would overwrite a model. `is_run`: whether a run has left
// a log there; if it has no summary, it was killed, and its model is no reason to lose the run.
void check_may_begin(const std::filesystem::path& directory, bool is_run);

// Why nothing is left to train.
struct NothingLeft {
  std::string text = {};                   // "" if something is left
  std::vector<std::string> settings = {};  // with which the run would train on; empty: it cannot
};
// For a run that would go on from `point`.
NothingLeft nothing_left(const ResumePoint& point, const JobOptions& job);
// For the run in `directory`. `point`: as newest_resume_point() has returned it.
NothingLeft completed(const std::filesystem::path& directory, const std::optional<ResumePoint>& point,
                      const JobOptions& job);

}  // namespace arbalest::jobs
