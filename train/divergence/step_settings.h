// Settings of the command line that change the length of a run's steps.
#pragma once

#include <span>
#include <string>

#include "options/job_options.h"
#include "train/context/run_observer.h"

namespace arbalest::jobs {

// Returns the advice to a user whose run has diverged with these settings ("learning_rate.base=5"): it names those that
// change the length of the steps, and what makes steps smaller under the scheme that has diverged. "" if none does.
std::string advice_about_settings(const JobOptions& job, const RunSummary& summary,
                                  std::span<const std::string> settings);

}  // namespace arbalest::jobs
