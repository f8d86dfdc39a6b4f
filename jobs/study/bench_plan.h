// What `arbalest bench` is to run: jobs, variations of them and seeds, all checked before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/run/run_observer.h"

namespace arbalest::jobs {

struct BenchRequest {
  std::vector<std::string> jobs;        // paths of job files
  std::vector<std::string> settings;    // "path=value", as --set takes them, for all jobs
  std::vector<std::string> variations;  // "path=value,value,...": every combination of them
  std::string seeds;                    // "1..5", "1,2,7"
  std::optional<double> target;         // unset: the jobs' own
  bool no_target = false;               // train all epochs, whatever target the jobs have
};

// A job and one value for each variation.
struct BenchCase {
  std::string job_path;
  std::string job;                    // its name
  std::string label;                  // "lenet-mnist training.batch_size=16", of no other case
  std::string name;                   // what tells the case from the others of the plan: "batch_size=16, 4 learners"
  std::string series_name;            // the name without numbers of learners
  std::string directory;              // of its runs, below the bench's: "2-lenet-mnist"
  std::vector<std::string> settings;  // all of "path=value"
  std::vector<std::pair<std::string, std::string>> varied;  // path, value
  std::int64_t batch_size = 0;
  std::string job_sha256;                             // of the job as text, with every setting and default but the seed
  EvaluationSet accuracy_set = EvaluationSet::kTest;  // that its target is for
};

struct BenchPlan {
  std::optional<double> target;      // test accuracy; unset: every run trains all its epochs
  std::vector<std::uint64_t> seeds;  // in the order in which they run
  std::vector<BenchCase> cases;

  // "test accuracy", "validation accuracy"; "accuracy" where the cases have unlike sets.
  std::string accuracy_text() const;
  std::size_t runs() const { return seeds.size() * cases.size(); }
};

// Throws kUsage for a --target that is no accuracy.
void check_target(double target);

// Throws kUsage for seeds, a target, or a variation that make no sense, for jobs that have no accuracy, and what
// load_job throws for a job that is wrong, with `--vary` where a variation has caused it.
BenchPlan plan_bench(const BenchRequest& request);

}  // namespace arbalest::jobs
