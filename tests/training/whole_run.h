// Runs whole jobs through jobs::train.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/host/topology.h"
#include "options/loading/load_job.h"
#include "tests/support/skip.h"
#include "tests/support/source_directory.h"
#include "train/train.h"

namespace arbalest::tests {

// Loads a ready job with overrides.
inline jobs::JobOptions load(const std::string& config, const std::vector<std::string>& overrides) {
  return jobs::load_job(source_directory() + "/configs/" + config, overrides);
}

inline jobs::JobOptions parse(const std::string& text) { return jobs::parse_job(jobs::SourceText("test", text)); }

// A job that tunes up to four learners on a device with two cores and on a device with one core. On machines with two
// cores the devices share one. The job begins with one learner on each device.
inline jobs::JobOptions tuned_on_unlike_devices() {
  const auto cores = engine::host::allowed_cores();
  if (cores.size() < 2) skip_test("it takes two cores");
  jobs::JobOptions job = load("logistic-digits.txtpb", {"learners.per_device.auto={max: 4}"});
  job.devices = {engine::parse_device(fmt::format("cpu:{},{}", cores[0], cores[1])),
                 engine::parse_device(fmt::format("cpu:{}", cores.back()))};
  job.learners_per_device = {1, 1};
  return job;
}

// `output`: the run's directory; "" stores nothing.
inline jobs::RunSummary run(const jobs::JobOptions& job, const std::string& output = "") {
  const char* root = std::getenv("ARBALEST_DATA");
  jobs::RunContext context;
  context.data_root = root == nullptr ? "" : root;
  context.output_directory = output;
  return jobs::train(job, context);
}

}  // namespace arbalest::tests
