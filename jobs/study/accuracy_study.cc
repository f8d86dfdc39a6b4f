#include "jobs/study/accuracy_study.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "autotuner/search.h"
#include "engine/error.h"
#include "jobs/messages/text.h"
#include "jobs/options/load_job.h"
#include "jobs/run/accuracy_target.h"
#include "jobs/run/inspection.h"
#include "jobs/run/learners/learner_changes.h"

namespace arbalest::jobs {

namespace {

// Records when the target was reached, but lets the training go on.
class Watcher final : public RunObserver {
 public:
  Watcher(AccuracyPoint& point, double target, int max_epochs, const std::function<void(const std::string&)>& tell)
      : point_(point), target_(target), max_epochs_(max_epochs), tell_(tell) {}

  void on_start(const RunStart& /*start*/) override {}
  void on_progress(const RunProgress& /*progress*/) override {}
  void on_epoch(const EpochRow& row) override {
    // The accuracy of a model without a finite loss does not count.
    const bool reached = std::isfinite(row.decisive_loss()) && target_.add(row.decisive_accuracy());
    const bool first = reached && !point_.seconds;
    if (first) {
      point_.seconds = row.elapsed_seconds;
      point_.epochs = row.epoch;
    }
    const EvaluationSet set = row.validation_accuracy ? EvaluationSet::kValidation : EvaluationSet::kTest;
    tell_(fmt::format("{}: epoch {}/{}, {} accuracy {}, {:.1f} s{}", counted(point_.learners, "learner"), row.epoch,
                      max_epochs_, to_string(set), percent(row.decisive_accuracy()), row.elapsed_seconds,
                      first ? ", the target is reached" : ""));
  }
  void on_finish(const RunSummary& summary) override {
    point_.accuracy = summary.test_accuracy;
    point_.best_accuracy = summary.best_test_accuracy;
    point_.validation_accuracy = summary.validation_accuracy;
    point_.best_validation_accuracy = summary.best_validation_accuracy;
    point_.total_seconds = summary.train_seconds;
    point_.images_per_second = summary.images_per_second;
  }

 private:
  AccuracyPoint& point_;
  AccuracyTarget target_;
  int max_epochs_;
  const std::function<void(const std::string&)>& tell_;
};

// Returns none if a signal stopped the training.
std::optional<AccuracyPoint> train_point(const JobOptions& job, RunContext context, const autotuner::Configuration& at,
                                         double target, const std::function<void(const std::string&)>& tell) {
  const std::string learners = fmt::format("learners.per_device.fixed={}", at.learners);
  JobOptions fixed = parse_job(SourceText(job.name, job.resolved_text), {&learners, 1});
  fixed.data.validation = job.data.validation;  // its errors point into the user's text
  fixed.training.target_accuracy.reset();       // the training must not stop early, because the accuracy at the end is
                                                // wanted, too
  AccuracyPoint point{.learners = at.learners, .threads = at.threads};
  const Inspection inspection = inspect(fixed);
  point.learner_bytes = inspection.learner_bytes * at.learners * static_cast<std::int64_t>(job.devices.size());
  Watcher watcher(point, target, fixed.training.max_epochs, tell);
  context.observers = {&watcher};
  context.output_directory.clear();
  context.learner_cache = nullptr;
  const RunSummary summary = train(fixed, context);
  if (summary.status == RunStatus::kStopped) return std::nullopt;
  if (summary.status == RunStatus::kDiverged) {
    tell(fmt::format("{}: {}", counted(at.learners, "learner"), summary.message));
  }
  return point;
}

std::string explain(const AccuracyPoint* chosen, const AccuracyStudy& study) {
  const std::string stopped = study.signal == 0 ? "" : "stopped before all trainings had ended: ";
  if (chosen == nullptr) {
    return fmt::format("{}no number of learners reached {} {} accuracy within {}", stopped, percent(study.target),
                       to_string(study.accuracy_set), epochs_text(study.max_epochs));
  }
  const auto tried = static_cast<std::int64_t>(study.points.size());
  std::string reason = fmt::format(
      "{}{} on each device reached {} {} accuracy after {:.1f} s ({}), the fewest learners within 3 % of the first of "
      "{}",
      stopped, counted(chosen->learners, "learner"), percent(study.target), to_string(study.accuracy_set),
      chosen->seconds.value_or(0.0), epochs_text(chosen->epochs.value_or(0)), counted(tried, "training"));
  if (const auto& accuracy = final_accuracy(*chosen, study.accuracy_set)) {
    reason += fmt::format(", and ended at {}", percent(*accuracy));
  }
  return reason;
}

}  // namespace

const std::optional<double>& final_accuracy(const AccuracyPoint& point, EvaluationSet set) {
  return set == EvaluationSet::kTest ? point.accuracy : point.validation_accuracy;
}

const std::optional<double>& best_accuracy(const AccuracyPoint& point, EvaluationSet set) {
  return set == EvaluationSet::kTest ? point.best_accuracy : point.best_validation_accuracy;
}

const AccuracyPoint* choose(const std::vector<AccuracyPoint>& points) {
  constexpr double kAlike = 1.03;
  const AccuracyPoint* first = nullptr;
  for (const AccuracyPoint& point : points) {
    if (point.seconds && (first == nullptr || *point.seconds < *first->seconds)) first = &point;
  }
  if (first == nullptr) return nullptr;
  const AccuracyPoint* chosen = first;
  for (const AccuracyPoint& point : points) {
    if (point.seconds && *point.seconds <= kAlike * *first->seconds && point.learners < chosen->learners) {
      chosen = &point;
    }
  }
  return chosen;
}

std::vector<autotuner::Configuration> studied_counts(const JobOptions& job, bool every_count) {
  const autotuner::Bounds bounds{job.tuned->min, job.tuned->max};
  if (every_count) return all_counts_on(job.devices.front(), bounds);
  return autotuner::octaves_of(autotuner::common_counts(counts_on(job.devices, bounds)));
}

AccuracyStudy study_accuracy(const JobOptions& job, const RunContext& context, const AccuracyStudyOptions& options,
                             const std::function<void(const std::string&)>& tell) {
  ARBALEST_CHECK(job.tuned.has_value());
  AccuracyStudy study{.job = job.name,
                      .devices = {},
                      .batch_size = job.training.batch_size,
                      .precision = to_string(job.training.precision),
                      .seed = job.training.seed,
                      .target = options.target,
                      .accuracy_set = job.data.validation ? EvaluationSet::kValidation : EvaluationSet::kTest,
                      .max_epochs = job.training.max_epochs,
                      .signal = 0,
                      .reason = {},
                      .points = {}};
  for (const engine::DeviceSpec& device : job.devices) study.devices.push_back(device.name);
  for (const autotuner::Configuration& at : studied_counts(job, options.every_count)) {
    try {
      const auto point = train_point(job, context, at, options.target, tell);
      if (!point) {
        study.signal = *context.stop_signal;
        break;
      }
      study.points.push_back(*point);
    } catch (const engine::Error& error) {
      // More learners may not fit into memory, or into a dataset whose size only its files tell.
      const bool is_limit =
          error.kind() == engine::ErrorKind::kOutOfMemory || error.kind() == engine::ErrorKind::kInvalidJob;
      if (!is_limit || study.points.empty()) throw;
      tell(fmt::format("{} and more are left out: {}", counted(at.learners, "learner"), error.what()));
      break;
    }
  }
  const AccuracyPoint* chosen = choose(study.points);
  if (chosen != nullptr) study.chosen = chosen->learners;
  study.reason = explain(chosen, study);
  return study;
}

}  // namespace arbalest::jobs
