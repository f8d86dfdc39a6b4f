// A run before it trains: its job, its directory, the checkpoint that it goes on from, and its context. The program and
// the library both make their runs here.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/process/world.h"
#include "options/job_options.h"
#include "report/reopen/run_location.h"
#include "train/context/run_context.h"

namespace arbalest::jobs {

class PreparedRun {
 public:
  struct Options {
    LocationOptions location;
    std::string data_root;
    std::string program;                // version and commit, for checkpoints
    std::vector<std::string> settings;  // those with which the job was read
    // Reads the job again with other settings, because the run that goes on had more of them. Collective.
    std::function<JobOptions(std::span<const std::string> settings)> read;
    Warn warn;
  };

  // Rank 0 of `world` opens the run's directory; all processes get the state that the run goes on from. Collective.
  // Throws as open_run_location does, and what Options::read throws.
  PreparedRun(JobOptions read_job, const Options& options, engine::process::World& world);
  PreparedRun(const PreparedRun&) = delete;
  PreparedRun& operator=(const PreparedRun&) = delete;

  const JobOptions& job() const noexcept { return job_; }
  // Why nothing is left to train; its text is empty if something is. train() must not be called otherwise.
  const NothingLeft& completed() const noexcept { return location_.completed; }
  RunDirectory& directory() noexcept { return *location_.directory; }  // rank 0 alone has it
  // For train(). On rank 0 the directory is the first observer; the caller adds others.
  RunContext& context() noexcept { return context_; }

 private:
  void share(engine::process::World& world);

  JobOptions job_;
  RunLocation location_;
  RunContext context_;
};

}  // namespace arbalest::jobs
