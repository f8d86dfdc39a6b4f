#include "study/accuracy_study.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "autotuner/search.h"
#include "engine/base/error.h"
#include "messages/text.h"
#include "options/loading/load_job.h"
#include "options/readers/team_check.h"
#include "train/context/accuracy_target.h"
#include "train/inspection.h"
#include "train/learners/tuned_devices.h"

namespace arbalest::jobs {

namespace {

// Records when the target was reached, but lets the training go on.
class Watcher final : public RunObserver {
 public:
  // `name`: what the lines of `note` begin with.
  Watcher(AccuracyRun& run, std::string name, double target, int max_epochs,
          const std::function<void(const std::string&)>& note)
      : run_(run), name_(std::move(name)), goal_(target), target_(target), max_epochs_(max_epochs), note_(note) {}

  void on_start(const RunStart& /*start*/) override {}
  void on_progress(const RunProgress& /*progress*/) override {}
  void on_epoch(const EpochRow& row) override {
    // The accuracy of a model without a finite loss does not count.
    const double accuracy = row.decisive().value("accuracy").value_or(0.0);
    const bool reached = std::isfinite(row.decisive().loss()) && target_.add(accuracy);
    const bool first = reached && !run_.seconds;
    if (first) {
      run_.seconds = row.elapsed_seconds;
      run_.epochs = row.epoch;
    }
    const EvaluationSet set = row.validation.empty() ? EvaluationSet::kTest : EvaluationSet::kValidation;
    note_(fmt::format("{}: epoch {}/{}, {} accuracy {}, {:.1f} s{}", name_, row.epoch, max_epochs_, to_string(set),
                      percent(accuracy, goal_), row.elapsed_seconds, first ? ", the target is reached" : ""));
  }
  void on_finish(const RunSummary& summary) override {
    run_.accuracy = summary.test.value("accuracy");
    run_.best_accuracy = summary.best_test;
    run_.validation_accuracy = summary.validation.value("accuracy");
    run_.best_validation_accuracy = summary.best_validation;
    run_.total_seconds = summary.train_seconds;
    run_.images_per_second = summary.images_per_second;
  }

 private:
  AccuracyRun& run_;
  const std::string name_;
  const double goal_;
  AccuracyTarget target_;
  int max_epochs_;
  const std::function<void(const std::string&)>& note_;
};

// "2 learners", or with several seeds "2 learners, seed 3".
std::string name_of(int learners, std::uint64_t seed, std::size_t seeds) {
  const std::string name = counted(learners, "learner");
  return seeds == 1 ? name : fmt::format("{}, seed {}", name, seed);
}

// The job with a fixed number of learners and a seed. It trains to its last epoch, because the accuracy at the end is
// wanted, too.
JobOptions fixed_job(const JobOptions& job, int learners, std::uint64_t seed) {
  std::vector<std::string> settings = learner_settings(job, learners);
  settings.push_back(fmt::format("training.seed={}", seed));
  JobOptions fixed = parse_job(SourceText(job.name, job.resolved_text), settings);
  fixed.data.validation = job.data.validation;  // its errors point into the user's text
  fixed.data.class_names_error = job.data.class_names_error;
  fixed.training.target_accuracy.reset();
  return fixed;
}

// Trains once for each seed. Returns none if a signal stopped a training.
std::optional<AccuracyPoint> train_point(const JobOptions& job, RunContext context, const autotuner::Configuration& at,
                                         const AccuracyStudyOptions& options,
                                         const std::function<void(const std::string&)>& note) {
  AccuracyPoint point{.learners = at.learners, .threads = at.threads};
  context.output_directory.clear();
  context.learner_cache = nullptr;
  for (const std::uint64_t seed : options.seeds) {
    const JobOptions fixed = fixed_job(job, at.learners, seed);
    if (point.runs.empty()) {
      const auto learners = std::int64_t{at.learners} * static_cast<std::int64_t>(job.devices.size());
      point.learner_bytes = inspect(fixed).learner_bytes * learners;
    }
    AccuracyRun& run = point.runs.emplace_back(AccuracyRun{.seed = seed});
    const std::string name = name_of(at.learners, seed, options.seeds.size());
    Watcher watcher(run, name, options.target, fixed.training.max_epochs, note);
    context.observers = {&watcher};
    const RunSummary summary = train(fixed, context);
    if (summary.status == RunStatus::kStopped) return std::nullopt;
    if (summary.status == RunStatus::kDiverged) note(fmt::format("{}: {}", name, summary.message));
  }
  return point;
}

std::string range_text(const AccuracyPoint& point) {
  const double most = point.most_seconds();
  return fmt::format("{}: {:.1f} to {}", counted(point.learners, "learner"), point.least_seconds(),
                     std::isfinite(most) ? fmt::format("{:.1f} s", most) : "never");
}

// Why no number is chosen although some reached the target.
std::string explain_undecided(const AccuracyChoice& choice, const AccuracyStudy& study) {
  std::string ranges = range_text(*choice.first);
  for (const AccuracyPoint* other : choice.indistinct) ranges += "; " + range_text(*other);
  return fmt::format(
      "no number of learners is first: over {} the times to {} {} accuracy overlap ({}); more seeds or a higher target "
      "may separate them",
      counted(static_cast<std::int64_t>(study.seeds.size()), "seed"), target_percent(study.target),
      to_string(study.accuracy_set), ranges);
}

// The epochs of the run whose time is the median.
int median_epochs(const AccuracyPoint& point) {
  const auto epochs = median(
      point, [](const AccuracyRun& run) { return run.epochs ? std::optional<double>(*run.epochs) : std::nullopt; });
  return static_cast<int>(epochs.value_or(0.0));
}

std::string explain(const AccuracyChoice& choice, const AccuracyStudy& study) {
  const std::string stopped = study.signal == 0 ? "" : "stopped before all trainings had ended: ";
  if (choice.first == nullptr) {
    return fmt::format("{}no number of learners reached {} {} accuracy within {}", stopped,
                       target_percent(study.target), to_string(study.accuracy_set), epochs_text(study.max_epochs));
  }
  if (choice.chosen == nullptr) return stopped + explain_undecided(choice, study);
  const bool has_spread = study.seeds.size() > 1;
  const std::string why = has_spread ? fmt::format("median of {}, before every other number in each of them",
                                                   counted(static_cast<std::int64_t>(study.seeds.size()), "seed"))
                                     : fmt::format("the fewest learners within 3 % of the first of {}",
                                                   counted(static_cast<std::int64_t>(study.points.size()), "training"));
  std::string reason = fmt::format("{}{} on each device reached {} {} accuracy after {:.1f} s ({}), {}", stopped,
                                   counted(choice.chosen->learners, "learner"), target_percent(study.target),
                                   to_string(study.accuracy_set), choice.chosen->seconds().value_or(0.0),
                                   epochs_text(median_epochs(*choice.chosen)), why);
  const auto accuracy =
      median(*choice.chosen, [&](const AccuracyRun& run) { return final_accuracy(run, study.accuracy_set); });
  if (accuracy) reason += fmt::format(", and ended at {}", percent(*accuracy));
  return reason;
}

}  // namespace

std::optional<double> median(const AccuracyPoint& point,
                             const std::function<std::optional<double>(const AccuracyRun&)>& value) {
  std::vector<double> values;
  for (const AccuracyRun& run : point.runs) {
    if (const std::optional<double> each = value(run)) values.push_back(*each);
  }
  const std::size_t middle = (point.runs.size() - 1) / 2;  // missing values come last
  if (point.runs.empty() || middle >= values.size()) return std::nullopt;
  std::ranges::sort(values);
  return values[middle];
}

std::optional<double> AccuracyPoint::seconds() const {
  return median(*this, [](const AccuracyRun& run) { return run.seconds; });
}

double AccuracyPoint::least_seconds() const {
  double least = std::numeric_limits<double>::infinity();
  for (const AccuracyRun& run : runs) least = std::min(least, run.seconds.value_or(least));
  return least;
}

double AccuracyPoint::most_seconds() const {
  double most = 0.0;
  for (const AccuracyRun& run : runs) {
    most = std::max(most, run.seconds.value_or(std::numeric_limits<double>::infinity()));
  }
  return most;
}

const std::optional<double>& final_accuracy(const AccuracyRun& run, EvaluationSet set) {
  return set == EvaluationSet::kTest ? run.accuracy : run.validation_accuracy;
}

const std::optional<double>& best_accuracy(const AccuracyRun& run, EvaluationSet set) {
  return set == EvaluationSet::kTest ? run.best_accuracy : run.best_validation_accuracy;
}

AccuracyChoice choose(const std::vector<AccuracyPoint>& points) {
  AccuracyChoice choice;
  for (const AccuracyPoint& point : points) {
    const bool is_sooner = choice.first == nullptr || point.seconds() < choice.first->seconds();
    if (point.seconds() && is_sooner) choice.first = &point;
  }
  if (choice.first == nullptr) return choice;
  choice.chosen = choice.first;
  const bool has_spread = choice.first->runs.size() > 1;
  for (const AccuracyPoint& point : points) {
    if (&point == choice.first) continue;
    if (has_spread) {
      if (point.least_seconds() <= choice.first->most_seconds()) choice.indistinct.push_back(&point);
      continue;
    }
    constexpr double kAlike = 1.03;
    const bool is_alike = point.seconds() && *point.seconds() <= kAlike * *choice.first->seconds();
    if (is_alike && point.learners < choice.chosen->learners) choice.chosen = &point;
  }
  if (!choice.indistinct.empty()) choice.chosen = nullptr;
  return choice;
}

std::vector<autotuner::Configuration> studied_counts(const JobOptions& job, bool every_count) {
  const autotuner::Bounds bounds{job.tuned->min, job.tuned->max};
  if (every_count) return all_counts_on(job.devices.front(), bounds);
  return autotuner::octaves_of(autotuner::common_counts(counts_on(job.devices, bounds)));
}

AccuracyStudy study_accuracy(const JobOptions& job, const RunContext& context, const AccuracyStudyOptions& given,
                             const std::function<void(const std::string&)>& note) {
  ARBALEST_CHECK(job.tuned.has_value());
  AccuracyStudyOptions options = given;
  if (options.seeds.empty()) options.seeds = {job.training.seed};
  AccuracyStudy study{.job = job.name,
                      .devices = {},
                      .batch_size = job.training.batch_size,
                      .precision = to_string(job.training.precision),
                      .seeds = options.seeds,
                      .target = options.target,
                      .accuracy_set = job.data.has_validation() ? EvaluationSet::kValidation : EvaluationSet::kTest,
                      .max_epochs = job.training.max_epochs,
                      .signal = 0,
                      .reason = {},
                      .points = {}};
  for (const engine::DeviceSpec& device : job.devices) study.devices.push_back(device.name);
  for (const autotuner::Configuration& at : studied_counts(job, options.every_count)) {
    try {
      const auto point = train_point(job, context, at, options, note);
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
      note(fmt::format("{} and more are left out: {}", counted(at.learners, "learner"), error.what()));
      break;
    }
  }
  const AccuracyChoice choice = choose(study.points);
  if (choice.chosen != nullptr) study.chosen = choice.chosen->learners;
  study.reached = choice.first != nullptr;
  study.reason = explain(choice, study);
  return study;
}

}  // namespace arbalest::jobs
