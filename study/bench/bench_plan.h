// The plan of `arbalest bench`: jobs, their variations and seeds, all checked before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/context/run_observer.h"

namespace arbalest::jobs {

struct BenchRequest {
  std::vector<std::string> jobs;        // paths of job files
  std::vector<std::string> settings;    // "path=value", as for --set; for all jobs
  std::vector<std::string> variations;  // "path=value,value,...": all combinations are run
  std::string seeds;                    // "1..5", "1,2,7"
  std::optional<double> target;         // unset: the jobs' own
  bool no_target = false;               // train all epochs, even if the jobs have targets
};

// A job with one value for each variation.
struct BenchCase {
  std::string job_path;
  std::string job;                    // its name
  std::string label;                  // "lenet-mnist training.batch_size=16", unique in the plan
  std::string name;                   // what distinguishes the case in the plan: "batch_size=16, 4 learners"
  std::string series_name;            // the name without numbers of learners
  std::string directory;              // directory of its runs below the bench's: "2-lenet-mnist"
  std::vector<std::string> settings;  // all settings, as "path=value"
  std::vector<std::pair<std::string, std::string>> varied;  // path, value
  std::int64_t batch_size = 0;
  std::string job_sha256;  // of the job as text, with every setting and default except the seed
  EvaluationSet accuracy_set = EvaluationSet::kTest;  // set that the target refers to
};

struct BenchPlan {
  std::optional<double> target;      // test accuracy; unset: every run trains all its epochs
  std::vector<std::uint64_t> seeds;  // in the order in which they run
  std::vector<BenchCase> cases;
  std::vector<std::string> warnings = {};  // about numbers in the job files (ParsedJob::number_warnings)

  // "test accuracy", "validation accuracy"; "accuracy" if the cases use different sets.
  std::string accuracy_text() const;
  std::size_t runs() const { return seeds.size() * cases.size(); }
};

// Throws kUsage if --target is not an accuracy.
void check_target(double target);

// Throws kUsage for invalid seeds, targets or variations and for jobs without accuracy. Throws what load_job throws for
// a wrong job; the message names `--vary` if a variation caused the error.
BenchPlan plan_bench(const BenchRequest& request);

}  // namespace arbalest::jobs
