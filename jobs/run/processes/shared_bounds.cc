#include "jobs/run/processes/shared_bounds.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/error.h"
#include "jobs/messages/text.h"
#include "jobs/options/readers/learners_reader.h"
#include "jobs/options/readers/size_check.h"
#include "jobs/run/processes/shared_results.h"

namespace arbalest::jobs {

using engine::process::World;

namespace {

// Why the largest number of learners is too large; "" if it is not.
std::string excess_of(const JobOptions& job) {
  std::string problem = instability_of_all(job);
  if (problem.empty() && job.data.training_examples) {
    const std::int64_t batches = *job.data.training_examples / job.training.batch_size;
    problem = long_round(job, most_learners_of_all(job), batches);
  }
  return problem;
}

// Each process computes the same, from the `devices` and bounds (`most`) of all. Returns the last excess.
std::string lower_bound(const std::vector<int>& devices, const std::vector<int>& most, JobOptions& job) {
  const int own = job.tuned->max;
  std::string excess;
  for (int bound = std::ranges::max(most); bound >= job.tuned->min; --bound) {
    int all = 0;
    for (std::size_t rank = 0; rank < most.size(); ++rank) all += devices[rank] * std::min(most[rank], bound);
    job.tuned->max = std::min(own, bound);
    job.learners_elsewhere = all - most_learners(job);
    std::string problem = excess_of(job);
    if (problem.empty()) break;
    excess = std::move(problem);
  }
  return excess;
}

}  // namespace

void share_bounds(World& world, JobOptions& job) {
  const std::vector<int> devices = join(world, {static_cast<int>(job.devices.size())});
  const std::vector<int> most = join(world, {job.tuned ? job.tuned->max : most_learners(job)});
  if (job.tuned) {
    const std::string excess = lower_bound(devices, most, job);
    if (!excess.empty()) {
      job.warnings.push_back(
          fmt::format("learners.per_device.auto: all {} processes together will have at most {} of "
                      "each device: {}",
                      world.size(), counted(job.tuned->max, "learner"), excess));
    }
  } else {
    job.learners_elsewhere = std::reduce(most.begin(), most.end()) - most_learners(job);
  }
  together(world, [&] {
    const std::string problem = job.tuned ? excess_of(job) : instability_of_all(job);
    if (!problem.empty()) {
      engine::fail(engine::ErrorKind::kInvalidJob, "with the learners of all {} processes: {}", world.size(), problem);
    }
  });
}

std::string long_round(const JobOptions& job, int learners, std::int64_t batches) {
  for (const SchemePhase& phase : scheme_phases(job, learners)) {
    std::string problem = check_round(phase.learners, phase.scheme.period, batches);
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace arbalest::jobs
