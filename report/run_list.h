// Lists the runs below a directory: what `arbalest runs` prints.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace arbalest::jobs {

struct ListedRun {
  std::filesystem::path directory;
  std::string job;  // name of the job; "" before the run begins
  // "completed", "target_reached", "stopped", "diverged" or "failed" from the summary of a run that ended; else
  // "running", or "killed" if its process is gone.
  std::string status;
  int epochs = 0;  // completed epochs
  // "test_accuracy", "validation_rmse" and so on: by what the run is judged; "" before the first evaluation.
  std::string metric;
  std::optional<double> last;          // of the metric, after the last epoch
  std::optional<double> best;          // of the metric, over all epochs
  std::optional<double> test;          // of the final model on the test set; none before the run has ended
  std::optional<double> time_seconds;  // since the start of training; none before the first epoch
  std::string problem;                 // why a file of the run cannot be read; "" if all can
};

// Returns the runs in `directory` itself, in its subdirectories, and in those of benches (runs/<bench>/<case>/<run>),
// in the order of their names. Links are followed to runs only. Files that cannot be read are told in
// ListedRun::problem. Throws ErrorKind::kUsage if `directory` does not exist or cannot be listed.
std::vector<ListedRun> list_runs(const std::filesystem::path& directory);

// Returns ListedRun::status of the run in `directory`; "" if it has no log, as an imported model.
std::string status_of_run(const std::filesystem::path& directory);

// A table with a header row, one run a line.
std::string runs_table(std::span<const ListedRun> runs);
nlohmann::ordered_json to_json(const ListedRun& run);

}  // namespace arbalest::jobs
