#include "train/processes/shared_bounds.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "messages/text.h"
#include "options/readers/learners_reader.h"
#include "options/readers/size_check.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

using engine::process::World;

namespace {

// Why a round of the largest number of learners is too long, if the size of the data is known; "" if it is not.
std::string long_round_of_all(const JobOptions& job) {
  if (!job.data.training_examples) return "";
  return long_round(job, most_learners_of_all(job), *job.data.training_examples / job.training.batch_size);
}

// Lowers the bound of all devices until there is no excess. Each process computes the same, from the `devices` and
// bounds (`most`) of all. Returns the last excess.
std::string lower_bound(const std::vector<int>& devices, std::vector<int>& most, JobOptions& job,
                        std::string (*excess_of)(const JobOptions&)) {
  std::string excess;
  for (int bound = std::ranges::max(most); bound >= job.tuned->min; --bound) {
    for (int& each : most) each = std::min(each, bound);
    job.tuned->max = std::min(job.tuned->max, bound);
    job.learners_elsewhere = std::inner_product(devices.begin(), devices.end(), most.begin(), 0) - most_learners(job);
    std::string problem = excess_of(job);
    if (problem.empty()) break;
    excess = std::move(problem);
  }
  return excess;
}

void share_bounds_of_search(World& world, JobOptions& job, const std::vector<int>& devices, std::vector<int> most) {
  std::string excess = lower_bound(devices, most, job, instability_of_all);
  const std::string too_long = long_round_of_all(job);
  if (!too_long.empty() && job.tuned->max_is_given) {
    throw SharedError(
        engine::ErrorKind::kInvalidJob,
        fmt::format("learners.per_device.auto.max: with the learners of all {} processes, {}", world.size(), too_long));
  }
  if (!too_long.empty()) excess = lower_bound(devices, most, job, long_round_of_all);
  if (excess.empty()) return;
  job.warnings.push_back(
      fmt::format("learners.per_device.auto: all {} processes together will have at most {} of each device: {}",
                  world.size(), counted(job.tuned->max, "learner"), excess));
}

}  // namespace

void share_bounds(World& world, JobOptions& job) {
  const std::vector<int> devices = join(world, {static_cast<int>(job.devices.size())});
  const std::vector<int> most = join(world, {job.tuned ? job.tuned->max : most_learners(job)});
  if (job.tuned) {
    share_bounds_of_search(world, job, devices, most);
  } else {
    job.learners_elsewhere = std::reduce(most.begin(), most.end()) - most_learners(job);
  }
  together(world, [&] {
    std::string problem = instability_of_all(job);
    if (problem.empty() && job.tuned) problem = long_round_of_all(job);
    if (!problem.empty()) {
      engine::fail(engine::ErrorKind::kInvalidJob, "with the learners of all {} processes: {}", world.size(), problem);
    }
  });
}

}  // namespace arbalest::jobs
