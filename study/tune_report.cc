#include "study/tune_report.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autotuner/throughput.h"
#include "messages/text.h"
#include "report/json.h"
#include "study/svg_chart.h"

namespace arbalest::jobs {

namespace {

// Scheme whose learners compute their gradients at one point (autotuner/noise_scale.h).
constexpr std::string_view kUnbiased = "s_sgd";

nlohmann::ordered_json null_unless_known(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json to_json(const TunePoint& point) {
  return {{"learners", per_device(point.learners)},
          {"threads", per_device(point.threads)},
          {"images_per_second", point.images_per_second},
          {"error", point.error},
          {"windows", point.windows},
          {"lost", null_unless_known(point.lost)},
          {"images_per_processor_second", null_unless_known(point.images_per_processor_second)},
          {"processor_error", point.images_per_processor_second ? nlohmann::ordered_json(point.processor_error)
                                                                : nlohmann::ordered_json()},
          {"efficiency", null_unless_known(point.efficiency)},
          {"goodput", point.efficiency ? nlohmann::ordered_json(point.goodput()) : nlohmann::ordered_json()},
          {"learner_bytes", point.learner_bytes}};
}

nlohmann::ordered_json to_json(const std::vector<TunePoint>& points) {
  auto json = nlohmann::ordered_json::array();
  for (const TunePoint& point : points) json.push_back(to_json(point));
  return json;
}

nlohmann::ordered_json to_json(const std::optional<TuneGain>& gain) {
  if (!gain) return nullptr;
  return {{"ratio", gain->ratio},
          {"error", gain->error},
          {"by", gain->by_processor_time ? "processor_time" : "examples_per_second"},
          {"is_lower_bound", gain->is_lower_bound}};
}

const std::vector<TunePoint>& curve_of(const TuneResult& result) {
  return result.sweep.empty() ? result.points : result.sweep;
}

bool are_alike(const std::vector<int>& counts) {
  return std::ranges::adjacent_find(counts, std::ranges::not_equal_to()) == counts.end();
}

const char* name_of(TuningObjective objective) {
  return objective == TuningObjective::kGoodput ? "goodput" : "throughput";
}

// "4", or "3, 6" by device.
std::string counts_text(const std::vector<int>& counts) {
  return are_alike(counts) ? std::to_string(counts.front()) : fmt::format("{}", fmt::join(counts, ", "));
}

// "4 learners on each device", "3 learners on cpu:0-2, 6 learners on cpu:3"
std::string chosen_text(const TuneResult& result) {
  if (are_alike(result.chosen)) return counted(result.chosen.front(), "learner") + " on each device";
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < result.chosen.size(); ++d) {
    parts.push_back(fmt::format("{} on {}", counted(result.chosen[d], "learner"), result.devices[d]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

nlohmann::ordered_json to_json(const TuneResult& result) {
  return {{"job", result.job},
          {"devices", result.devices},
          {"batch_size", result.batch_size},
          {"precision", result.precision},
          {"status", result.is_complete ? "completed" : "stopped"},
          {"chosen", result.chosen},
          {"reason", result.reason},
          {"images_per_second", result.images_per_second},
          {"objective", name_of(result.objective)},
          {"synchronization", result.synchronization},
          {"noise_scale", null_unless_known(result.noise_scale)},
          {"machine",
           {{"is_known", result.machine.is_known},
            {"is_quiet", result.machine.was_quiet},
            {"lost", result.machine.is_known ? nlohmann::ordered_json(result.machine.lost) : nlohmann::ordered_json()},
            {"disturbed_windows", result.machine.disturbed_windows}}},
          {"may_be_remembered", may_be_remembered(result)},
          {"gain", to_json(result.gain)},
          {"regret", null_unless_known(result.regret)},
          {"regret_error", result.regret ? nlohmann::ordered_json(result.regret_error) : nlohmann::ordered_json()},
          {"probes", result.probes},
          {"seconds", result.seconds},
          {"points", to_json(result.points)},
          {"sweep", to_json(result.sweep)},
          {"one_learner", result.baseline ? to_json(*result.baseline) : nlohmann::ordered_json()},
          {"fewer_threads", to_json(result.fewer_threads)}};
}

namespace {

std::vector<std::string> row_of(const TuneResult& result, const TunePoint& point, bool may_be_chosen) {
  std::vector<std::string> row = {counts_text(point.learners), counts_text(point.threads),
                                  grouped(std::llround(point.images_per_second)),
                                  fmt::format("{:.1f} %", 100.0 * point.error)};
  if (result.machine.is_known) {
    row.push_back(point.lost ? fmt::format("{:.1f} %", 100.0 * *point.lost) : "unknown");
    row.push_back(point.images_per_processor_second ? grouped(std::llround(*point.images_per_processor_second))
                                                    : "unknown");
  }
  if (result.objective == TuningObjective::kGoodput) {
    row.push_back(point.efficiency ? fmt::format("{:.2f}", *point.efficiency) : "unknown");
    row.push_back(point.efficiency ? grouped(std::llround(point.goodput())) : "unknown");
  }
  row.push_back(bytes_text(point.learner_bytes));
  row.push_back(may_be_chosen && point.learners == result.chosen ? "chosen" : "");
  return row;
}

std::string point_table(const TuneResult& result) {
  std::vector<std::vector<std::string>> rows = {{"learners", "threads each", "examples/s", "error"}};
  if (result.machine.is_known) rows.front().insert(rows.front().end(), {"lost", "per processor s"});
  if (result.objective == TuningObjective::kGoodput) {
    rows.front().insert(rows.front().end(), {"efficiency", "goodput"});
  }
  rows.front().insert(rows.front().end(), {"memory", ""});
  const std::vector<TunePoint>& points = curve_of(result);
  for (const TunePoint& point : result.fewer_threads) rows.push_back(row_of(result, point, false));
  const bool has_baseline =
      !result.baseline || std::ranges::find(points, result.baseline->learners, &TunePoint::learners) != points.end();
  if (!has_baseline) rows.push_back(row_of(result, *result.baseline, false));
  for (const TunePoint& point : points) rows.push_back(row_of(result, point, true));
  return table(rows, 0);
}

// Whether a learner with fewer threads was clearly faster than the chosen numbers.
std::string thread_advice(const TuneResult& result) {
  if (!result.machine.was_quiet || result.fewer_threads.empty() || result.devices.size() != 1) return "";
  const TunePoint& best = *std::ranges::max_element(result.fewer_threads, {}, &TunePoint::goodput);
  const auto chosen = std::ranges::find(curve_of(result), result.chosen, &TunePoint::learners);
  if (chosen == curve_of(result).end()) return "";
  const double error = autotuner::combined_error(best.error, chosen->error);
  const double ratio = best.goodput() / chosen->goodput();
  if (ratio < 1.0 + 2.0 * error) return "";
  const int threads = best.threads.front();
  return fmt::format(
      "1 learner with {} is {:.2f} (standard error {:.2f}) times as fast: give it fewer cores, as in devices: '{}'\n",
      counted(threads, "thread"), ratio, ratio * error, threads == 1 ? "cpu:0" : fmt::format("cpu:0-{}", threads - 1));
}

std::string machine_text(const TuneResult& result) {
  const TuneMachine& machine = result.machine;
  if (!machine.is_known) return "";
  if (!machine.was_quiet) {
    return fmt::format(
        "\nTHE MACHINE WAS BUSY: other programs took {:.0f} % of the processor time that the learners wanted, and did "
        "so again in {} that were repeated. Examples/s do not compare numbers of learners then. Measure again on a "
        "quiet machine{}.\n",
        100.0 * machine.lost, counted(machine.disturbed_windows, "window"),
        may_be_remembered(result) ? "" : "; the result is not cached for runs with 'auto {}'");
  }
  if (machine.disturbed_windows == 0) return "";
  return fmt::format("{}, as other programs had disturbed them\n",
                     counted(machine.disturbed_windows, "window") +
                         (machine.disturbed_windows == 1 ? " was repeated" : " were repeated"));
}

}  // namespace

std::string to_text(const TuneResult& result) {
  std::string text = point_table(result);
  if (result.noise_scale) {
    text += fmt::format("\ngradient noise scale: {:.0f} examples\n", *result.noise_scale);
    if (result.synchronization != kUnbiased) {
      text += fmt::format(
          "under {} it comes out too large, as its learners stand at different points: efficiency and goodput of many "
          "learners are too high. Under {} it is unbiased.\n",
          result.synchronization, kUnbiased);
    }
  }
  text += fmt::format("\n{}: {}\n", chosen_text(result), result.reason);
  if (result.regret && result.machine.was_quiet) {
    text += fmt::format("{:.1f} % {} than the best of the sweep (standard error {:.1f} %)\n", 100.0 * *result.regret,
                        result.noise_scale ? "less goodput" : "slower", 100.0 * result.regret_error);
  }
  text += thread_advice(result) + machine_text(result);
  if (!result.is_complete) text += "stopped before the sweep had ended\n";
  return text;
}

// If the devices have different numbers, the x axis shows the learners of all devices. Points of the sweep with
// different numbers are not part of its curve; they are drawn as dots.
std::string to_svg(const TuneResult& result) {
  const std::vector<TunePoint>& points = curve_of(result);
  const bool each = std::ranges::all_of(points, are_alike, &TunePoint::learners);
  const auto learners = [&](const TunePoint& point) {
    return each ? point.learners.front() : std::accumulate(point.learners.begin(), point.learners.end(), 0);
  };
  ChartSeries curve{.dots = true, .ranges = ChartRanges::kWhiskers};
  ChartSeries beside = curve;
  for (const TunePoint& point : points) {
    ChartSeries& series = result.sweep.empty() || are_alike(point.learners) ? curve : beside;
    const double two_errors = 2.0 * point.error * point.images_per_second;
    series.points.push_back({.x = static_cast<double>(learners(point)),
                             .y = point.images_per_second,
                             .marked = point.learners == result.chosen,
                             .least = std::max(0.0, point.images_per_second - two_errors),
                             .most = point.images_per_second + two_errors});
  }
  const std::string over = each ? "learners per device" : "learners of all devices";
  const LineChart chart{
      .title = fmt::format("{}: examples/s over {}, mini-batches of {}{}", result.job, over, result.batch_size,
                           result.machine.was_quiet ? "" : " (on a busy machine)"),
      .x = {each ? over : fmt::format("{}; chosen: {}", over, chosen_text(result)), ChartScale::kDoubling},
      .y = {"examples/s", ChartScale::kLinear, 0.0},
      .series = {curve, beside}};
  return as_document(to_svg(chart));
}

}  // namespace arbalest::jobs
