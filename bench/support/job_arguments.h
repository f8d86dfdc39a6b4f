// The command-line arguments that define a benchmark's job.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "options/job_options.h"

namespace arbalest::bench {

struct JobArguments {
  std::string file = "configs/lenet-digits.txtpb";
  std::string data_root = "data";
  std::vector<std::string> overrides = {};  // --set options, for all contenders

  // Loads the job with additional changes of a benchmark or of one of its contenders; with precision AUTO, it
  // gets the precision that a trial finds faster. Throws like jobs::load_job.
  jobs::JobOptions load(const std::vector<std::string>& changes = {}) const;
};

// Adds the arguments JOB, --data-root and --set.
void add_job(CLI::App& app, JobArguments& job);

}  // namespace arbalest::bench
