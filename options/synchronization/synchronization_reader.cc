#include "options/synchronization/synchronization_reader.h"

#include <string>

#include <fmt/format.h>

#include "dataflow/models/fields/field_ranges.h"
#include "options/synchronization/hogwild_check.h"
#include "options/synchronization/job_schemes.h"
#include "options/synchronization/scheme_kinds.h"
#include "options/synchronization/switch_reader.h"

namespace arbalest::jobs {

namespace {

constexpr double kWarmStartEpochs = 1.0;

// Whether it is not s_sgd by another name.
bool is_asynchronous(const v1::AsyncSgd& kind) {
  const bool pushes_each = !kind.has_push_every() || kind.push_every() == 1;
  return !(kind.has_staleness() && kind.staleness() == 0 && pushes_each);
}

bool has_momentum(const v1::Optimizer& optimizer) {
  return optimizer.sgd().momentum() > 0.0F || optimizer.rmsprop().momentum() > 0.0F;
}

// A delay of tau steps leaves stable only about (1 - momentum) / tau of the step that is stable without a delay, so
// steps with momentum need to be as much smaller as they are late (Zhang et al., "Staleness-aware async-SGD", IJCAI
// 2016).
void fill_scaling(v1::AsyncSgd& kind, const v1::Optimizer& optimizer) {
  if (kind.has_scale_by_staleness()) return;
  kind.set_scale_by_staleness(is_asynchronous(kind) && has_momentum(optimizer));
}

void check_asynchronous(const JobOptions& options, dataflow::FieldIssues& issues) {
  const std::string path = path_of(sma::Scheme::kAsyncSgd, options);
  if (path.empty() || !options.tuned) return;
  issues.add(path,
             "async_sgd and learners.per_device.auto exclude each other: the auto-tuner measures rounds, and "
             "async_sgd has none; set learners { per_device { fixed: ... } }, or choose another scheme");
}

}  // namespace

void fill_synchronization(v1::Synchronization& synchronization, const v1::Optimizer& optimizer, int max_epochs) {
  if (synchronization.has_async_sgd()) {
    const bool is_asynchronous = takes_whole_steps(synchronization);
    v1::AsyncSgd& kind = *synchronization.mutable_async_sgd();
    if (!kind.has_warm_start_epochs()) {
      const bool warms_up = max_epochs > 1 && is_asynchronous && !has_momentum(optimizer);
      kind.set_warm_start_epochs(warms_up ? kWarmStartEpochs : 0.0);
    }
    fill_scaling(kind, optimizer);
  }
  for (v1::Switch& each : *synchronization.mutable_switch_()) {
    if (!each.has_async_sgd()) continue;
    fill_scaling(*each.mutable_async_sgd(), optimizer);
    if (!each.async_sgd().has_warm_start_epochs()) each.mutable_async_sgd()->set_warm_start_epochs(0.0);
  }
}

bool takes_whole_steps(const v1::Synchronization& synchronization) {
  if (synchronization.has_hogwild()) return true;
  return synchronization.has_async_sgd() && is_asynchronous(synchronization.async_sgd());
}

void read_synchronization(const v1::Synchronization& synchronization, JobOptions& options,
                          dataflow::FieldIssues& issues) {
  dataflow::check_fields(synchronization, "synchronization", issues);
  options.reports_loss_gap = synchronization.report_loss_gap();
  options.compare_rounds = synchronization.compare_rounds();
  const scheduler::MovingAverageOptions& average = options.training.moving_average;
  if (options.reports_loss_gap && (average.epochs > 0.0 || average.mean_from_epoch)) {
    issues.add("synchronization.report_loss_gap",
               "report_loss_gap compares the learners with the model as it is, and this job evaluates an average over "
               "time; set training.moving_average_epochs: 0 and remove training.mean_from_epoch");
  }
  if (options.reports_loss_gap && options.data.kind == DataOptions::Kind::kRatings) {
    issues.add("synchronization.report_loss_gap",
               "report_loss_gap is for classifiers, and ratings are numbers; remove it");
  }
  const std::string path = "synchronization";
  const PlacedScheme kind = read_scheme(synchronization, path);
  options.synchronization = kind.options;
  options.synchronization_path = kind.path;
  if (synchronization.has_async_sgd()) add_warm_start(synchronization.async_sgd(), options, issues);
  for (int i = 0; i < synchronization.switch__size(); ++i) {
    read_switch(synchronization.switch_(i), fmt::format("{}.switch[{}]", path, i), options, issues);
  }
  check_asynchronous(options, issues);
  check_hogwild(options, issues);
}

}  // namespace arbalest::jobs
