#include "jobs/options/synchronization/synchronization_reader.h"

#include <string>

#include <fmt/format.h>

#include "jobs/options/synchronization/hogwild_check.h"
#include "jobs/options/synchronization/job_schemes.h"
#include "jobs/options/synchronization/scheme_kinds.h"
#include "jobs/options/synchronization/switch_reader.h"

namespace arbalest::jobs {

using dataflow::out_of_range;

namespace {

constexpr double kWarmStartEpochs = 1.0;
constexpr int kMostCompareRounds = 1'000'000'000;

void check_asynchronous(const JobOptions& options, dataflow::FieldIssues& issues) {
  const std::string path = path_of(sma::Scheme::kAsyncSgd, options);
  if (path.empty() || !options.tuned) return;
  issues.add(path,
             "async_sgd and learners.per_device.auto exclude each other: the auto-tuner measures rounds, and "
             "async_sgd has none; set learners { per_device { fixed: ... } }, or choose another scheme");
}

}  // namespace

void fill_synchronization(v1::Synchronization& synchronization, int max_epochs) {
  if (synchronization.has_async_sgd() && !synchronization.async_sgd().has_warm_start_epochs()) {
    const bool begins_with_other = max_epochs > 1 && takes_whole_steps(synchronization);
    synchronization.mutable_async_sgd()->set_warm_start_epochs(begins_with_other ? kWarmStartEpochs : 0.0);
  }
  fill_scheme(synchronization);
  if (!synchronization.has_report_loss_gap()) synchronization.set_report_loss_gap(false);
  if (!synchronization.has_compare_rounds()) synchronization.set_compare_rounds(JobOptions().compare_rounds);
  for (v1::Switch& each : *synchronization.mutable_switch_()) fill_scheme(each);
}

bool takes_whole_steps(const v1::Synchronization& synchronization) {
  if (synchronization.has_hogwild()) return true;
  if (!synchronization.has_async_sgd()) return false;
  const v1::AsyncSgd& kind = synchronization.async_sgd();
  const bool pushes_each = !kind.has_push_every() || kind.push_every() == 1;
  return !(kind.has_staleness() && kind.staleness() == 0 && pushes_each);
}

void read_synchronization(const v1::Synchronization& synchronization, JobOptions& options,
                          dataflow::FieldIssues& issues) {
  options.reports_loss_gap = synchronization.report_loss_gap();
  options.compare_rounds = synchronization.compare_rounds();
  issues.add("synchronization.compare_rounds",
             out_of_range("compare_rounds", options.compare_rounds, {0, kMostCompareRounds}));
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
  const PlacedScheme kind = read_scheme(synchronization, path, issues);
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
