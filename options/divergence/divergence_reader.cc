#include "options/divergence/divergence_reader.h"

#include <fmt/format.h>

#include "dataflow/models/fields/field_defaults.h"
#include "messages/text.h"
#include "scheduler/replicas/loss_watch.h"

namespace arbalest::jobs {

void fill_divergence(v1::Training& training) {
  if (training.on_divergence() != v1::Training::ROLL_BACK) return;
  dataflow::fill_field(training, "rollback_factor");
  dataflow::fill_field(training, "spike_factor");
}

DivergenceOptions read_divergence(const v1::Job& job, dataflow::FieldIssues& issues) {
  const v1::Training& training = job.training();
  DivergenceOptions options;
  if (training.on_divergence() != v1::Training::ROLL_BACK) {
    const auto refuse = [&](bool is_given, const char* field) {
      if (!is_given) return;
      issues.add(fmt::format("training.{}", field),
                 fmt::format("{} has no effect without on_divergence: ROLL_BACK; add that", field));
    };
    refuse(training.has_rollback_factor(), "rollback_factor");
    refuse(training.has_spike_factor(), "spike_factor");
    return options;
  }
  options.rolls_back = true;
  options.rollback_factor = training.rollback_factor();
  options.spike_factor = training.spike_factor();
  if (job.checkpoint().keep_last() == 0) {
    issues.add("training.on_divergence",
               "ROLL_BACK goes back to a checkpoint, and checkpoint.keep_last is 0; set it to 1 or more");
  }
  return options;
}

std::string spike_warning(const TrainingOptions& training, std::int64_t batches) {
  if (!training.divergence.rolls_back || batches == 0) return "";
  const std::int64_t window = scheduler::SpikeRule{}.batches_of_window(training.batch_size);
  const std::int64_t windows = batches * training.max_epochs / window;
  // The windows of a spike are the last ones, behind those that they are compared with.
  const std::int64_t first_high = windows - scheduler::LossWatch::kHighWindows;
  constexpr auto kReference = static_cast<std::int64_t>(scheduler::LossWatch::kReference);
  if (first_high >= kReference && first_high * window >= batches) return "";
  return fmt::format(
      "training.spike_factor has no effect: spike detection starts after epoch 1 and needs {} windows of {} "
      "mini-batches, "
      "and the run has {} windows in {}; only values that are NaN or infinite cause a rollback",
      kReference + scheduler::LossWatch::kHighWindows, window, windows, counted(training.max_epochs, "epoch"));
}

}  // namespace arbalest::jobs
