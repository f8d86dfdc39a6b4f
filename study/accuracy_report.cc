#include "study/accuracy_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "messages/text.h"
#include "report/json.h"
#include "study/svg_chart.h"

namespace arbalest::jobs {

namespace {

using nlohmann::ordered_json;

using Value = std::optional<double>;

Value seconds_of(const AccuracyRun& run) { return run.seconds; }
Value epochs_of(const AccuracyRun& run) { return run.epochs ? Value(*run.epochs) : std::nullopt; }
Value images_of(const AccuracyRun& run) { return run.images_per_second; }

// The values of one run, or of a point: get(value) returns either value(run) or its median over the point's runs.
ordered_json values_of(const AccuracyStudy& study, const auto& get) {
  const Value epochs = get(epochs_of);
  ordered_json values = {{"time_to_accuracy_seconds", null_unless_set(get(seconds_of))},
                         {"epochs_to_accuracy", epochs ? ordered_json(std::lround(*epochs)) : ordered_json()}};
  const auto add = [&](const char* name, const auto& value) { values[name] = null_unless_set(get(value)); };
  add("test_accuracy", [](const AccuracyRun& run) { return run.accuracy; });
  add("best_test_accuracy", [](const AccuracyRun& run) { return run.best_accuracy; });
  add("train_seconds", [](const AccuracyRun& run) { return Value(run.total_seconds); });
  add("images_per_second", images_of);
  if (study.accuracy_set == EvaluationSet::kTest) return values;
  add("validation_accuracy", [](const AccuracyRun& run) { return run.validation_accuracy; });
  add("best_validation_accuracy", [](const AccuracyRun& run) { return run.best_validation_accuracy; });
  return values;
}

// "12.3 (11.9 to 12.8)": the median and the range of the runs that have the value; "12.3" for one run, "-" if the
// median is missing.
std::string spread_text(const AccuracyPoint& point, const auto& value, const auto& text) {
  const Value middle = median(point, value);
  std::vector<double> all;
  for (const AccuracyRun& run : point.runs) {
    if (const Value each = value(run)) all.push_back(*each);
  }
  const std::string median_text = middle ? text(*middle) : "-";
  if (point.runs.size() < 2 || all.empty()) return median_text;
  const std::string most = all.size() < point.runs.size() ? "never" : text(std::ranges::max(all));
  return fmt::format("{} ({} to {})", median_text, text(std::ranges::min(all)), most);
}

// A chart over learners of the points for which `value_of` has a value.
LineChart chart_over_learners(const AccuracyStudy& study, std::string title, ChartAxis y, const auto& value_of) {
  ChartSeries series{.dots = true};
  for (const AccuracyPoint& point : study.points) {
    const std::optional<double> value = value_of(point);
    if (!value) continue;
    series.points.push_back({static_cast<double>(point.learners), *value, point.learners == study.chosen});
  }
  return {
      .title = std::move(title),
      .x = {"learners per device", ChartScale::kDoubling, study.points.empty() ? 1.0 : study.points.back().learners},
      .y = std::move(y),
      .series = {std::move(series)}};
}

}  // namespace

ordered_json to_json(const AccuracyStudy& study) {
  auto points = ordered_json::array();
  for (const AccuracyPoint& point : study.points) {
    const ordered_json medians = values_of(study, [&](const auto& value) { return median(point, value); });
    ordered_json entry = {{"learners", point.learners}, {"threads", point.threads}};
    entry.update(medians);
    entry["learner_bytes"] = point.learner_bytes;
    entry["runs"] = ordered_json::array();
    for (const AccuracyRun& run : point.runs) {
      ordered_json& each = entry["runs"].emplace_back(ordered_json{{"seed", run.seed}});
      each.update(values_of(study, [&](const auto& value) { return value(run); }));
    }
    points.push_back(std::move(entry));
  }
  const auto chosen =
      study.chosen ? ordered_json(std::vector<int>(study.devices.size(), *study.chosen)) : ordered_json();
  return {{"job", study.job},
          {"objective", "time-to-accuracy"},
          {"status", study.signal == 0 ? "completed" : "stopped"},
          {"devices", study.devices},
          {"batch_size", study.batch_size},
          {"precision", study.precision},
          {"seeds", study.seeds},
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
                                                 fmt::format("final {} accuracy", to_string(set)), "best", "examples/s",
                                                 "memory", ""}};
  for (const AccuracyPoint& point : study.points) {
    const auto percents = [&](const auto& value) {
      return spread_text(point, value, [](double each) { return percent(each); });
    };
    rows.push_back({std::to_string(point.learners), std::to_string(point.threads),
                    spread_text(point, seconds_of, [](double value) { return fmt::format("{:.1f}", value); }),
                    spread_text(point, epochs_of, [](double value) { return fmt::format("{:.0f}", value); }),
                    percents([&](const AccuracyRun& run) { return final_accuracy(run, set); }),
                    percents([&](const AccuracyRun& run) { return best_accuracy(run, set); }),
                    spread_text(point, images_of, [](double value) { return grouped(std::llround(value)); }),
                    bytes_text(point.learner_bytes), point.learners == study.chosen ? "chosen" : ""});
  }
  const char* note = study.seeds.size() > 1 ? "median over the seeds (least to most)\n" : "";
  return fmt::format("{}{}\n{}\n", table(rows, 0), note, study.reason);
}

std::string to_svg(const AccuracyStudy& study) {
  const std::string accuracy = fmt::format("{} accuracy", to_string(study.accuracy_set));
  const LineChart times = chart_over_learners(
      study,
      fmt::format("{}: seconds to {} {} over learners per device", study.job, target_percent(study.target), accuracy),
      {"seconds to target", ChartScale::kLinear, 0.0}, [](const AccuracyPoint& point) { return point.seconds(); });
  LineChart accuracies = chart_over_learners(
      study, fmt::format("{} after {}, and the target", accuracy, epochs_text(study.max_epochs)),
      {accuracy, ChartScale::kPercent}, [&](const AccuracyPoint& point) {
        return median(point, [&](const AccuracyRun& run) { return final_accuracy(run, study.accuracy_set); });
      });
  accuracies.level = study.target;
  return as_document(side_by_side(to_svg(times), to_svg(accuracies)));
}

}  // namespace arbalest::jobs
