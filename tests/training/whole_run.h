// Whole runs through jobs::train, for tests.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "jobs/options/load_job.h"
#include "jobs/run/trainer.h"
#include "tests/support/source_directory.h"

namespace arbalest::tests {

// A ready job, changed.
inline jobs::JobOptions load(const std::string& config, const std::vector<std::string>& overrides) {
  return jobs::load_job(source_directory() + "/configs/" + config, overrides);
}

inline jobs::JobOptions parse(const std::string& text) { return jobs::parse_job(jobs::SourceText("test", text)); }

// output: "" keeps nothing.
inline jobs::RunSummary run(const jobs::JobOptions& job, const std::string& output = "") {
  const char* root = std::getenv("ARBALEST_DATA");
  jobs::RunContext context;
  context.data_root = root == nullptr ? "" : root;
  context.output_directory = output;
  return jobs::train(job, context);
}

}  // namespace arbalest::tests
