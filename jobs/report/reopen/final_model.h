// Tells users about the final model of a run: how the run ended, or why it has no model, and the way out.
#pragma once

#include <filesystem>
#include <string>

#include "jobs/report/run_directory.h"

namespace arbalest::jobs {

// Returns a warning for the final model of a run that diverged or failed, or that was resumed and killed; "" for
// others. Names the run's status, what the model's file holds, and other models of the run.
std::string warning_about_model(const std::filesystem::path& run, const SavedSummary& summary);

// Refuses a run without a final model, with the reason and the way to a model. Throws kCheckpoint.
[[noreturn]] void fail_without_model(const std::filesystem::path& run);

// Throws kUsage for a run whose job has no checkpoints and no best model to choose (RUN with --checkpoint).
void require_checkpoints(const std::filesystem::path& run);

}  // namespace arbalest::jobs
