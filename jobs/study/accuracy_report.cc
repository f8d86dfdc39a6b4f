#include "jobs/study/accuracy_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "jobs/messages/text.h"
#include "jobs/report/json.h"
#include "jobs/study/svg_chart.h"

namespace arbalest::jobs {

namespace {

using nlohmann::ordered_json;

std::string percent_or_dash(const std::optional<double>& fraction) { return fraction ? percent(*fraction) : "-"; }

// A chart over learners of the points for which `value_of` has a value. The caller sets the y axis.
LineChart chart_over_learners(const AccuracyStudy& study, std::string title, const auto& value_of) {
  ChartSeries series{.color = 0, .dots = true, .points = {}};
  for (const AccuracyPoint& point : study.points) {
    const std::optional<double> value = value_of(point);
    if (!value) continue;
    series.points.push_back({static_cast<double>(point.learners), *value, point.learners == study.chosen});
  }
  return {.title = std::move(title),
          .x = doubling_axis("learners per device", study.points.empty() ? 2.0 : study.points.back().learners),
          .y = {},
          .series = {std::move(series)},
          .level = {}};
}

}  // namespace

ordered_json to_json(const AccuracyStudy& study) {
  auto points = ordered_json::array();
  for (const AccuracyPoint& point : study.points) {
    points.push_back({{"learners", point.learners},
                      {"threads", point.threads},
                      {"time_to_accuracy_seconds", null_unless_set(point.seconds)},
                      {"epochs_to_accuracy", null_unless_set(point.epochs)},
                      {"test_accuracy", null_unless_set(point.accuracy)},
                      {"best_test_accuracy", null_unless_set(point.best_accuracy)},
                      {"train_seconds", point.total_seconds},
                      {"images_per_second", point.images_per_second},
                      {"learner_bytes", point.learner_bytes}});
    if (study.accuracy_set == EvaluationSet::kTest) continue;
    points.back()["validation_accuracy"] = null_unless_set(point.validation_accuracy);
    points.back()["best_validation_accuracy"] = null_unless_set(point.best_validation_accuracy);
  }
  const auto chosen =
      study.chosen ? ordered_json(std::vector<int>(study.devices.size(), *study.chosen)) : ordered_json();
  return {{"job", study.job},
          {"objective", "time-to-accuracy"},
          {"status", study.signal == 0 ? "completed" : "stopped"},
          {"devices", study.devices},
          {"batch_size", study.batch_size},
          {"precision", study.precision},
          {"seed", study.seed},
          {"target_accuracy", study.target},
          {"accuracy_set", to_string(study.accuracy_set)},
          {"max_epochs", study.max_epochs},
          {"chosen", chosen},
          {"reason", study.reason},
          {"points", points}};
}

std::string to_text(const AccuracyStudy& study) {
  const EvaluationSet set = study.accuracy_set;
  std::vector<std::vector<std::string>> rows = {{"learners", "threads each", "seconds to target", "epochs",
                                                 fmt::format("final {} accuracy", to_string(set)), "best", "images/s",
                                                 "memory", ""}};
  for (const AccuracyPoint& point : study.points) {
    rows.push_back({std::to_string(point.learners), std::to_string(point.threads),
                    point.seconds ? fmt::format("{:.1f}", *point.seconds) : "-",
                    point.epochs ? std::to_string(*point.epochs) : "-", percent_or_dash(final_accuracy(point, set)),
                    percent_or_dash(best_accuracy(point, set)), grouped(std::llround(point.images_per_second)),
                    bytes_text(point.learner_bytes), point.learners == study.chosen ? "chosen" : ""});
  }
  return fmt::format("{}\n{}\n", table(rows, 0), study.reason);
}

std::string to_svg(const AccuracyStudy& study) {
  const std::string accuracy = fmt::format("{} accuracy", to_string(study.accuracy_set));
  LineChart times = chart_over_learners(
      study, fmt::format("{}: seconds to {} {} over learners per device", study.job, percent(study.target), accuracy),
      [](const AccuracyPoint& point) { return point.seconds; });
  double most_seconds = 0.0;
  for (const ChartPoint& point : times.series.front().points) most_seconds = std::max(most_seconds, point.y);
  times.y = linear_axis("seconds to target", 0.0, most_seconds, tick_text);
  LineChart accuracies =
      chart_over_learners(study, fmt::format("{} after {}, and the target", accuracy, epochs_text(study.max_epochs)),
                          [&](const AccuracyPoint& point) { return final_accuracy(point, study.accuracy_set); });
  double least = study.target;
  double most = study.target;
  for (const ChartPoint& point : accuracies.series.front().points) {
    least = std::min(least, point.y);
    most = std::max(most, point.y);
  }
  accuracies.y = linear_axis(accuracy, least, most, percent_tick_text);
  accuracies.level = study.target;
  return as_document(side_by_side(to_svg(times), to_svg(accuracies)));
}

}  // namespace arbalest::jobs
