// What a user may do with a run that has ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options/job_options.h"
#include "report/resume_point.h"
#include "train/context/run_observer.h"

namespace arbalest::jobs {

struct NextSteps {
  // The settings, as for --set, with which the run goes on from its newest checkpoint (--resume=auto); none: it cannot.
  std::optional<std::vector<std::string>> resume = {};
  // The settings with which the job may be trained anew, in another directory; none: nothing speaks for it.
  std::optional<std::vector<std::string>> anew = {};
  bool evaluates = false;    // whether there is a model to be evaluated
  std::string checkpoint{};  // "best", if the model at the end is none to use
  std::string input{};       // stands for what `arbalest predict` reads: "IMAGE"; "": it cannot read this model
};

// For the run in `directory`, which has just ended with `summary`.
NextSteps next_steps(const JobOptions& job, const RunSummary& summary, const std::string& directory);
// For a complete run.
NextSteps next_steps_of(const JobOptions& job, const NothingLeft& completed);

}  // namespace arbalest::jobs
