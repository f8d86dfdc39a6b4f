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
  std::vector<std::string> overrides = {};  // --set, for all contenders

  // With what a benchmark, or one of its contenders, changes besides. Throws as jobs::load_job does.
  jobs::JobOptions load(const std::vector<std::string>& changes = {}) const;
};

// JOB, --data-root and --set.
void add_job(CLI::App& app, JobArguments& job);

}  // namespace arbalest::bench
