#include "train/live/output_space.h"

#include <numeric>
#include <system_error>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/update_rule.h"
#include "messages/text.h"
#include "options/readers/learners_reader.h"
#include "scheduler/scheduler.h"

namespace arbalest::jobs {

std::int64_t model_bytes(const dataflow::Graph& graph) {
  const std::vector<engine::Shape> shapes = graph.shapes(1);
  std::int64_t elements = 0;
  for (const dataflow::Graph::Node& node : graph.nodes()) {
    for (const dataflow::ParameterSpec& parameter : dataflow::Graph::parameters(node, shapes)) {
      elements += parameter.shape.elements();
    }
  }
  return elements * static_cast<std::int64_t>(sizeof(float));
}

namespace {

// The files of a run that hold models: the model, the best one, and checkpoints with all vectors of each learner. While
// a checkpoint is written, there is one more than the job keeps.
std::int64_t run_bytes(const JobOptions& job) {
  const std::int64_t model = model_bytes(*job.graph);
  if (!job.checkpoint.are_on()) return model;
  const std::size_t slots = engine::state_slots(job.optimizer.rule).size();
  // The bound of a search may be far above its end.
  const int present = std::accumulate(job.learners_per_device.begin(), job.learners_per_device.end(), 0);
  const int learners =
      job.tuned ? present + job.learners_elsewhere / job.tuned->max * job.tuned->min : most_learners_of_all(job);
  const std::int64_t checkpoint = model * scheduler::Scheduler::state_vectors(learners, slots);
  const int points = job.training.divergence.rolls_back ? job.checkpoint.keep_last : 0;
  return 2 * model + checkpoint * (job.checkpoint.keep_last + points + job.checkpoint.keep_best + 1);
}

}  // namespace

void check_output_space(const std::filesystem::path& directory, const JobOptions& job) {
  constexpr std::int64_t kReserve = std::int64_t{1} << 20U;  // metrics of a few thousand epochs
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (error || space.capacity == 0) return;
  const std::int64_t models = run_bytes(job);
  const std::int64_t needed = models + kReserve;
  if (std::cmp_greater_equal(space.available, needed)) return;
  engine::fail(engine::ErrorKind::kOutOfMemory,
               "the disk of '{}' has {} free, but the run would write {}: {} of models{}, and {} are kept for metrics; "
               "free some, {}choose another directory with --output",
               directory.string(), bytes_text(static_cast<std::int64_t>(space.available)), bytes_text(needed),
               bytes_text(models), job.checkpoint.are_on() ? " and checkpoints" : "", bytes_text(kReserve),
               job.checkpoint.are_on() ? "lower checkpoint.keep_last, or " : "or ");
}

}  // namespace arbalest::jobs
