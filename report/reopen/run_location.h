// Opens the directory that a run writes to, and finds the checkpoint that it goes on from.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "options/job_options.h"
#include "report/resume_point.h"
#include "report/run_directory.h"

namespace arbalest::jobs {

struct RunLocation {
  std::unique_ptr<RunDirectory> directory;
  std::optional<ResumePoint> point;  // none: the run begins
  NothingLeft completed = {};        // why nothing is left to train, if nothing is
};

// The options --output and --resume of `arbalest train`.
struct LocationOptions {
  std::string output;           // the directory of the run; "": a new one below runs/, or the one that `resume` lies in
  std::string resume = "none";  // "none", "auto", or the path of a checkpoint or run
};

// Throws kUsage and kCheckpoint, as RunDirectory and the functions of report/resume_point.h do. `warn` is called
// here, and also when the run starts.
RunLocation open_run_location(const LocationOptions& options, const JobOptions& job, const Warn& warn);

}  // namespace arbalest::jobs
