#include "report/reopen/next_steps.h"

#include <filesystem>

#include <fmt/format.h>

#include "checkpoint/best_model.h"
#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_store.h"
#include "checkpoint/job/saved_job.h"
#include "checkpoint/run_end.h"

namespace arbalest::jobs {

namespace {

namespace fs = std::filesystem;

std::string input_of(const JobOptions& job) {
  using Kind = DataOptions::Kind;
  if (job.graph == nullptr) return "";
  const Kind kind = job.data.kind;
  const bool are_rows = kind == Kind::kNpy || kind == Kind::kNumbers || kind == Kind::kRatings;
  return are_rows ? "ROWS.npy" : "IMAGE";
}

// A diverged run may go back to its last checkpoint. One without a checkpoint before its end, or one that has gone back
// before, begins anew with smaller steps.
void add_after_divergence(const JobOptions& job, bool has_checkpoint, int epochs, NextSteps& steps) {
  if (has_checkpoint && !job.training.divergence.rolls_back && epochs < job.training.max_epochs) {
    steps.resume = {"training.on_divergence=ROLL_BACK"};
    return;
  }
  constexpr double kSmaller = 0.1;
  const double base = parse_saved_job(job.resolved_text).learning_rate().base();
  if (base > 0.0) steps.anew = {fmt::format("learning_rate.base={:g}", kSmaller * base)};
}

}  // namespace

NextSteps next_steps(const JobOptions& job, const RunSummary& summary, const std::string& directory) {
  NextSteps steps;
  if (summary.status == RunStatus::kFailed) return steps;
  const bool has_checkpoint = !list_checkpoints(checkpoints_of(directory)).empty();
  if (summary.status == RunStatus::kDiverged) {
    add_after_divergence(job, has_checkpoint, summary.reached.epochs, steps);
    std::error_code error;
    if (!fs::exists(fs::path(directory) / kBestModel, error)) return steps;
    steps.checkpoint = "best";
  } else if (has_checkpoint) {
    steps.resume = summary.status == RunStatus::kStopped ? std::vector<std::string>()
                                                         : settings_to_go_on(job.training, summary.reached);
  }
  steps.evaluates = !steps.checkpoint.empty() || !summary.model_sha256.empty();
  if (steps.evaluates) steps.input = input_of(job);
  return steps;
}

NextSteps next_steps_of(const JobOptions& job, const NothingLeft& completed) {
  NextSteps steps{.evaluates = true, .input = input_of(job)};
  if (!completed.settings.empty()) steps.resume = completed.settings;
  return steps;
}

}  // namespace arbalest::jobs
