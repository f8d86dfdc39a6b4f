#include "train/session/settled_precision.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/process/all_gather.h"
#include "options/loading/load_job.h"
#include "train/processes/shared_results.h"
#include "train/session/precision_trial.h"

namespace arbalest::jobs {

namespace {

using engine::Precision;
using engine::process::World;

// Why all processes take FP32; "" if a trial decides.
std::string shared_obstacle(World& world, const JobOptions& job) {
  const std::string own = obstacle_to_bfloat16(job, engine::instruction_sets_in_force());
  if (world.size() == 1) return own;
  const std::vector<std::string> all = engine::process::all_gather(world, own);
  for (int rank = 0; rank < world.size(); ++rank) {
    const std::string& obstacle = all[static_cast<std::size_t>(rank)];
    if (!obstacle.empty()) return fmt::format("{}: {}", world.place(rank), obstacle);
  }
  return "";
}

}  // namespace

SettledPrecision settle_precision(JobOptions& job, const engine::DeviceOptions& options, World& world) {
  const bool chooses = job.training.chooses_precision;
  const std::string obstacle = chooses ? shared_obstacle(world, job) : "";
  PrecisionTrial trial;
  if (!obstacle.empty()) trial.choice = float32_because(obstacle);
  together(world, [&] {
    if (world.rank() == 0 && obstacle.empty()) trial = try_precision(job, options);
  });
  if (trial.warning) job.warnings.push_back(std::move(*trial.warning));
  if (!chooses) return {.text = {}, .kernels = std::move(trial.kernels)};
  const PrecisionChoice choice = trial.choice.value_or(PrecisionChoice{});
  const bool is_bfloat16 = world.any_of(choice.precision == Precision::kBFloat16 ? 1 : 0) != 0;
  set_precision(job, is_bfloat16 ? Precision::kBFloat16 : Precision::kFloat32);
  return {.text = choice.text, .kernels = std::move(trial.kernels)};
}

JobOptions with_settled_precision(JobOptions job, const engine::DeviceOptions& options,
                                  const std::function<void(const std::string&)>& note) {
  if (!job.training.chooses_precision) return job;
  World alone;
  note("precision " + settle_precision(job, options, alone).text);
  return job;
}

}  // namespace arbalest::jobs
