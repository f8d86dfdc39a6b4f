#include "options/synchronization/hogwild_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "options/readers/learners_reader.h"
#include "options/sparse/hogwild_parts.h"
#include "options/synchronization/job_schemes.h"

namespace arbalest::jobs {

void check_hogwild(const JobOptions& options, dataflow::FieldIssues& issues) {
  const std::string path = path_of(sma::Scheme::kHogwild, options);
  if (path.empty()) return;
  if (options.tuned) {
    issues.add(path,
               "hogwild and learners.per_device.auto exclude each other: the auto-tuner measures rounds, and hogwild "
               "has none; set learners { per_device { fixed: ... } }, or choose another scheme");
  }
  refuse_gpus(options, "hogwild", issues);
  if (options.devices.size() > 1 && !options.devices.front().is_cuda()) {
    issues.add("devices[1]",
               fmt::format("hogwild needs one CPU device, whose learners share memory, and the job has {}; name one "
                           "device with the cores of all, or choose async_sgd, which works over several",
                           options.devices.size()));
  }
  if (options.reports_loss_gap) {
    issues.add("synchronization.report_loss_gap",
               "report_loss_gap does not work with hogwild: all learners share the model's weights, so there is no gap "
               "to report; remove it");
  }
}

std::optional<dataflow::FieldIssue> hogwild_warning(const JobOptions& options) {
  const std::vector<SchemePhase> phases = scheme_phases(options, most_learners(options));
  const auto found = std::ranges::find_if(phases, [](const SchemePhase& phase) {
    return phase.scheme.mode(phase.learners) == sma::SynchronizationMode::kShared;
  });
  if (found == phases.end()) return std::nullopt;
  return dataflow::FieldIssue{
      found->path,
      fmt::format(
          "the gradients of this model are dense, so {} learners write all weights at once without locks: some updates "
          "overwrite each other, and results differ from run to run; async_sgd applies every update, one after the "
          "other",
          found->learners)};
}

}  // namespace arbalest::jobs
