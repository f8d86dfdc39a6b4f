// The job that a benchmark trains, as its command line names it.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "jobs/options/job_options.h"

namespace arbalest::bench {

struct JobArguments {
  std::string file = "configs/lenet-digits.txtpb";
  std::string data_root = "data";
  std::vector<std::string> overrides = {};  // --set options, for all contenders

  // Loads the job with further changes of a benchmark or of one of its contenders. Throws as jobs::load_job does.
  jobs::JobOptions load(const std::vector<std::string>& changes = {}) const;
};

// Adds JOB, --data-root and --set.
void add_job(CLI::App& app, JobArguments& job);

}  // namespace arbalest::bench
