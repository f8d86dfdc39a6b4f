#include "bench/support/job_arguments.h"

#include <cstdio>

#include <fmt/format.h>

#include "options/loading/load_job.h"
#include "train/session/settled_precision.h"

namespace arbalest::bench {

jobs::JobOptions JobArguments::load(const std::vector<std::string>& changes) const {
  std::vector<std::string> all = overrides;
  all.insert(all.end(), changes.begin(), changes.end());
  return jobs::with_settled_precision(jobs::load_job(file, all), {},
                                      [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
}

void add_job(CLI::App& app, JobArguments& job) {
  app.add_option("JOB", job.file, "Job file")->capture_default_str();
  app.add_option("--data-root", job.data_root, "Where datasets lie")->envname("ARBALEST_DATA")->capture_default_str();
  app.add_option("--set", job.overrides, "PATH=VALUE, as for arbalest train")->allow_extra_args(false);
}

}  // namespace arbalest::bench
