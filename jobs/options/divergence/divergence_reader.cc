#include "jobs/options/divergence/divergence_reader.h"

#include <fmt/format.h>

namespace arbalest::jobs {

using dataflow::out_of_range;

void fill_divergence(v1::Training& training) {
  if (!training.has_on_divergence()) training.set_on_divergence(v1::Training::STOP);
  if (training.on_divergence() != v1::Training::ROLL_BACK) return;
  const DivergenceOptions defaults;
  if (!training.has_rollback_factor()) training.set_rollback_factor(defaults.rollback_factor);
  if (!training.has_spike_factor()) training.set_spike_factor(defaults.spike_factor);
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
  issues.add("training.rollback_factor",
             out_of_range("rollback_factor", options.rollback_factor, {0.0, 1.0, true, true}));
  issues.add("training.spike_factor", out_of_range("spike_factor", options.spike_factor, dataflow::above(1.0, 1e6)));
  if (job.checkpoint().keep_last() == 0) {
    issues.add("training.on_divergence",
               "ROLL_BACK goes back to a checkpoint, and checkpoint.keep_last is 0; set it to 1 or more");
  }
  return options;
}

}  // namespace arbalest::jobs
