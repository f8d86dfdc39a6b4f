// Results of a bench and their output: statistics, JSON, mllog lines, page.
#include <algorithm>
#include <array>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "study/bench/bench_mllog.h"
#include "study/bench/bench_page.h"
#include "study/bench/bench_report.h"
#include "study/svg_chart.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {
namespace {

using nlohmann::ordered_json;

BenchRun reached_after(std::uint64_t seed, int epochs, double seconds) {
  BenchRun run;
  run.seed = seed;
  run.outcome = BenchOutcome::kReached;
  run.directory = "1-job/seed-" + std::to_string(seed);
  run.log = run.directory + ".log";
  run.start_milliseconds = 1'700'000'000'000;
  run.learners = 2;
  run.epochs = epochs;
  run.train_seconds = seconds + 0.5;
  run.time_to_accuracy_seconds = seconds;
  run.images_per_second = 100.0;
  run.test_accuracy = 0.9;
  run.best_test_accuracy = 0.9;
  run.phases = {.preparation = 1.0,
                .training = seconds - 2.0,
                .working = {},
                .averaging_wait = {},
                .evaluation = 1.0,
                .other = 0.5};
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    run.rows.push_back({.epoch = epoch,
                        .elapsed_seconds = 1.0 + (seconds - 1.0) * epoch / epochs,
                        .test_accuracy = 0.9 * epoch / epochs,
                        .validation_accuracy = {},
                        .replica_distance = 0.25,
                        .training_seconds = 0.5,
                        .evaluation_seconds = 0.25,
                        .device_busy = {},
                        .averaging_wait = {}});
  }
  run.replica_distance = 0.25;
  return run;
}

BenchRun not_reached(std::uint64_t seed) {
  BenchRun run = reached_after(seed, 4, 40.0);
  run.outcome = BenchOutcome::kNotReached;
  run.time_to_accuracy_seconds.reset();
  return run;
}

BenchRun died(std::uint64_t seed) {
  BenchRun run;
  run.seed = seed;
  run.outcome = BenchOutcome::kDied;
  run.exit_code = 137;
  run.message = "it was ended by SIGKILL: <last> & \"least\"";
  run.directory = "1-job/seed-" + std::to_string(seed);
  run.log = run.directory + ".log";
  return run;
}

BenchResult some_result(const std::vector<BenchRun>& runs) {
  BenchResult result;
  result.plan.target = 0.9;
  BenchCase& of = result.plan.cases.emplace_back();
  of.job = "job";
  of.label = of.name = of.series_name = "job model={a < b}";
  of.batch_size = 16;
  for (const BenchRun& run : runs) result.plan.seeds.push_back(run.seed);
  result.machine = {{"cores", 4}};
  result.runs = runs;
  return result;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("bench statistics: a run that did not reach the target counts as slower than all that did") {
  const BenchStatistics all =
      summarize({reached_after(1, 2, 20.0), reached_after(2, 4, 10.0), reached_after(3, 3, 30.0)});
  CHECK(all.reached == 3);
  CHECK(all.time_to_accuracy.median == 20.0);
  CHECK(all.time_to_accuracy.least == 10.0);
  CHECK(all.time_to_accuracy.most == 30.0);
  CHECK(all.epochs_to_target.median == 3.0);
  CHECK(all.trimmed_mean_seconds == 20.0);
  CHECK(all.phases.training == Approx(18.0));

  const BenchStatistics one_missing = summarize({reached_after(1, 2, 20.0), not_reached(2), reached_after(3, 3, 30.0)});
  CHECK(one_missing.not_converged == 1);
  CHECK(one_missing.time_to_accuracy.median == 30.0);
  CHECK_FALSE(one_missing.time_to_accuracy.most.has_value());
  CHECK(one_missing.epochs_to_target.median == 3.0);
  CHECK_FALSE(one_missing.epochs_to_target.most.has_value());
  CHECK(one_missing.trimmed_mean_seconds == 30.0);

  const BenchStatistics two_missing = summarize({not_reached(1), not_reached(2), reached_after(3, 3, 30.0)});
  CHECK_FALSE(two_missing.time_to_accuracy.median.has_value());
  CHECK(two_missing.time_to_accuracy.least == 30.0);
  CHECK_FALSE(two_missing.epochs_to_target.median.has_value());
  CHECK(two_missing.epochs_to_target.least == 3.0);
  CHECK_FALSE(two_missing.trimmed_mean_seconds.has_value());
}

TEST_CASE("bench statistics: runs that died or did not run are counted, but left out of the statistics") {
  BenchRun never;
  const BenchStatistics of = summarize({reached_after(1, 2, 20.0), died(2), never});
  CHECK(of.runs == 3);
  CHECK(of.measured == 1);
  CHECK(of.died == 1);
  CHECK(of.stopped == 1);
  CHECK(of.time_to_accuracy.median == 20.0);
  CHECK_FALSE(of.trimmed_mean_seconds.has_value());
  CHECK_FALSE(summarize({died(1)}).time_to_accuracy.median.has_value());
}

TEST_CASE("bench statistics: time to accuracy is preparation plus epochs to target times seconds per epoch") {
  const BenchRun run = reached_after(1, 4, 21.0);
  CHECK(*run.seconds_per_epoch() == Approx(5.0));
  CHECK(run.phases.preparation + run.epochs * *run.seconds_per_epoch() == Approx(*run.time_to_accuracy_seconds));
  CHECK_FALSE(BenchRun().seconds_per_epoch().has_value());
}

TEST_CASE("bench report: the table and the JSON name every run") {
  const BenchResult result = some_result({reached_after(1, 2, 20.0), not_reached(2), died(3)});
  const std::string text = to_text(result);
  CHECK_THAT(text, ContainsSubstring("1 of 3, 1 died") && ContainsSubstring("not reached"));
  CHECK_THAT(text, ContainsSubstring("seed 3: died: it was ended by SIGKILL") && ContainsSubstring("1-job/seed-3.log"));
  const ordered_json json = to_json(result);
  CHECK(json["status"] == "complete");
  const ordered_json& of = json["cases"][0];
  CHECK(of["runs_planned"] == 3);
  CHECK(of["died"] == 1);
  CHECK(of["not_converged"] == 1);
  CHECK(of["time_to_accuracy_seconds"]["median"].is_null());
  CHECK(of["runs"][0]["epoch_rows"].size() == 2);
  CHECK(of["runs"][2]["outcome"] == "died");
  CHECK_FALSE(of["runs"][2].contains("test_accuracy"));
}

TEST_CASE("bench report: a run that does not hold the target yet says what is compared with the target") {
  const BenchResult result = some_result({not_reached(1)});  // accuracies of 22.5, 45, 67.5 and 90 %
  const std::string reason = "not_reached: the lower median of the last 4 evaluations is 45.00 %";
  CHECK_THAT(to_page(result), ContainsSubstring(reason));
  CHECK_THAT(to_markdown(result), ContainsSubstring(reason));
}

TEST_CASE("bench report: an unfinished bench says so, and names the machine's load") {
  BenchResult result = some_result({reached_after(1, 2, 20.0), BenchRun()});
  result.load_at_begin = {0.25, 0.5, 1.0};
  CHECK(to_json(result)["status"] == "running");
  CHECK(to_json(result)["load_average"]["begin"] == std::vector<double>{0.25, 0.5, 1.0});
  CHECK(to_json(result)["load_average"]["end"].empty());
  CHECK_THAT(to_page(result), ContainsSubstring("1 of 2 runs have ended; the bench goes on, or was killed") &&
                                  ContainsSubstring("0.25, 0.50, 1.00 before the first run, unknown after the last"));
  result.signal = 2;
  CHECK(to_json(result)["status"] == "stopped");
}

TEST_CASE("bench mllog: lines have the format's fields in order, and times never decrease") {
  const BenchResult result = some_result({reached_after(1, 2, 20.0), not_reached(2), died(3)});
  std::istringstream lines(to_mllog(result, result.runs[0]));
  std::vector<std::string> keys;
  std::int64_t last = 0;
  for (std::string line; std::getline(lines, line);) {
    REQUIRE(line.starts_with(":::MLLOG {"));
    const auto json = ordered_json::parse(line.substr(9));
    std::vector<std::string> names;
    for (const auto& [name, value] : json.items()) names.push_back(name);
    CHECK(names == std::vector<std::string>{"namespace", "time_ms", "event_type", "key", "value", "metadata"});
    CHECK(json["metadata"].contains("file"));
    CHECK(json["metadata"]["lineno"] > 0);
    CHECK(json["time_ms"] >= last);
    last = json["time_ms"];
    keys.push_back(json["key"]);
    if (keys.back() == "run_stop") CHECK(json["metadata"]["status"] == "success");
    if (keys.back() == "run_stop") CHECK(json["time_ms"] == 1'700'000'020'000);
  }
  for (const char* key : {"cache_clear", "init_start", "init_stop", "run_start", "run_stop", "seed"}) {
    CHECK(std::ranges::count(keys, key) == 1);
  }
  for (const char* key : {"epoch_start", "epoch_stop", "eval_start", "eval_stop", "eval_accuracy"}) {
    CHECK(std::ranges::count(keys, key) == 2);
  }
  CHECK_THAT(to_mllog(result, result.runs[1]), ContainsSubstring("\"status\":\"aborted\""));
  CHECK(to_mllog(result, result.runs[2]).find("run_stop") == std::string::npos);
}

TEST_CASE("bench page: needs no other file, escapes text, and closes every tag") {
  BenchRun empty;
  const std::string page = to_page(some_result({reached_after(1, 2, 20.0), died(2), empty}));
  for (const char* part : {"http:", "https:", "src=", "href=", "<script", "@import", "url("}) {
    INFO(part);
    const int names = std::string(part) == "http:" ? count_of(page, "xmlns=\"http:") : 0;
    CHECK(count_of(page, part) == names);
  }
  CHECK_THAT(page, ContainsSubstring("a &lt; b") && ContainsSubstring("&lt;last&gt; &amp; &quot;least&quot;"));
  CHECK_THAT(page, ContainsSubstring("prefers-color-scheme:dark") && ContainsSubstring("color-scheme:light dark"));
  for (const char* tag : {"svg", "table", "tr", "td", "th", "ul", "li", "figure", "text", "style", "pre", "div"}) {
    INFO(tag);
    const std::string name = tag;
    CHECK(count_of(page, "<" + name + ">") + count_of(page, "<" + name + " ") == count_of(page, "</" + name + ">"));
  }
  CHECK(count_of(page, "<svg") == 3 + 3);  // charts, and keys of their curves; there is no chart over learners
  CHECK_THAT(page, ContainsSubstring(": 20.5 s</div><div class=\"bar\" style=\"width:100.0%\"><i class=\"s0\" "
                                     "style=\"width:4.88%\"></i><i class=\"s1\" style=\"width:87.80%\"></i>"));
  CHECK(page.find("nan") == std::string::npos);
  CHECK(page.find("inf") == std::string::npos);
}

TEST_CASE("bench page: if every run was traced, the training time is divided into the learners' activities") {
  BenchRun run = reached_after(1, 2, 20.0);
  const std::string undivided = "they wait for averaging";
  CHECK(to_page(some_result({run})).find(undivided) == std::string::npos);
  run.phases.working = 10.0;
  run.phases.averaging_wait = 5.0;
  CHECK_THAT(to_page(some_result({run})), ContainsSubstring(undivided) && ContainsSubstring("they have no work"));
  const BenchStatistics of = summarize({run, run});
  CHECK(*of.phases.working == Approx(10.0));
  CHECK(*of.phases.averaging_wait == Approx(5.0));
}

TEST_CASE("bench page: a bench without results still has a page") {
  BenchResult result = some_result({BenchRun()});
  result.signal = 2;
  const std::string page = to_page(result);
  CHECK_THAT(page, ContainsSubstring("was stopped before all of its runs had ended") && ContainsSubstring("not_run"));
  CHECK(page.find("nan") == std::string::npos);
}

TEST_CASE("chart: axes end at ticks around the values, and points are between them") {
  LineChart chart{.title = "t", .x = {"x", ChartScale::kDoubling}, .y = {"y", ChartScale::kPercent}};
  chart.series = {{.points = {{2.0, 0.83}, {6.0, 0.9}}}};
  const std::string doubling = to_svg(chart);  // from 1 to 6, and from 82 to 90 %
  CHECK_THAT(doubling,
             ContainsSubstring("d=\"M308.9 285.0L640.0 40.0\"") && ContainsSubstring("<text x=\"517.8\" y=\"340\""
                                                                                     " text-anchor=\"middle\">4<"));
  CHECK_THAT(doubling, ContainsSubstring("y=\"324.0\" text-anchor=\"end\">82 %<") && ContainsSubstring(">90 %<"));
  chart.series = {{.points = {{1.0, 0.5}, {1.0, 0.5}}}};  // an axis is never empty
  CHECK_THAT(to_svg(chart), ContainsSubstring("d=\"M100.0 296.7L100.0 296.7\"") && ContainsSubstring(">2<"));
  chart = {.title = "t", .x = {"x"}, .y = {"y", ChartScale::kLinear, 0.0}};
  chart.series = {{.color = 7, .dots = true, .points = {{0.0, 0.0}, {10.0, 1.0, true}}}};
  const std::string svg = as_document(to_svg(chart));
  CHECK_THAT(svg, ContainsSubstring("<path class=\"curve s7\" stroke-dasharray=\"2 4\" d=\"M100.0 320.0L640.0 40.0\""));
  CHECK_THAT(svg, ContainsSubstring("class=\"s7 marked\" cx=\"640.0\"") && ContainsSubstring("<style>"));
  CHECK(tick_text(12345.0) == "12,345");
  chart.level = 1.0;
  chart.x.also = 0.0;
  chart.series = {{.color = 7, .points = {{5.0, 0.5}}}};  // one point makes no curve, so it has a dot
  CHECK_THAT(to_svg(chart), ContainsSubstring("class=\"s7\" ") && ContainsSubstring("M640.0 180.0"));
}

TEST_CASE("chart: series differ without color in curves, dots and legend") {
  LineChart chart{.title = "t", .x = {"x", ChartScale::kLinear, 0.0}, .y = {"y", ChartScale::kLinear, 0.0}};
  const auto without_color = [](const std::string& svg) {
    return std::regex_replace(svg, std::regex(R"(\bs[0-7]\b|#[0-9a-f]{6})"), "s");
  };
  std::vector<std::string> curves;
  std::vector<std::string> keys;
  for (int color = 0; color < 35; ++color) {
    chart.series = {{.color = color, .dots = true, .points = {{0.5, 0.5}}}};
    curves.push_back(without_color(to_svg(chart)));
    keys.push_back(without_color(series_key(color)));
  }
  CHECK_THAT(curves[8], ContainsSubstring("<path class=\"curve s\" stroke-dasharray=\"9 4 2 4\"") &&
                            ContainsSubstring("<polygon class=\"s\" points=\""));
  for (std::vector<std::string>* all : {&curves, &keys}) {
    CHECK((*all)[0].find("stroke-dasharray") == std::string::npos);
    std::ranges::sort(*all);
    CHECK(std::ranges::adjacent_find(*all) == all->end());
  }
  for (const char* look : {"prefers-color-scheme:dark", "svg.chart polygon"}) {
    CHECK_THAT(chart_style(), ContainsSubstring(look));
  }
}

TEST_CASE("chart: ranges are bands or whiskers, and a legend names the series") {
  LineChart chart{
      .title = "t", .x = {"x", ChartScale::kLinear, 0.0}, .y = {"y", ChartScale::kLinear, 0.0}, .level = 1.0};
  chart.series = {{.color = 0,
                   .dots = true,
                   .ranges = ChartRanges::kBand,
                   .name = "a < b",
                   .points = {{0.0, 0.5, false, 0.25, 0.75}, {0.5, 0.5}, {1.0, 0.5, false, 0.5, 1.0}}}};
  const std::string band = to_svg(chart);
  CHECK_THAT(band, ContainsSubstring("<path class=\"band s0\" d=\"M100.0 110.0L640.0 40.0L640.0 180.0L100.0 250.0Z\""));
  CHECK(count_of(band, "<circle") == 3);
  CHECK(band.find("a &lt; b") == std::string::npos);
  chart.legend = true;
  chart.series[0].ranges = ChartRanges::kWhiskers;
  chart.series[0].shift = 6.0;
  const std::string whiskers = to_svg(chart);
  CHECK_THAT(whiskers,
             ContainsSubstring("a &lt; b") &&
                 ContainsSubstring("<path class=\"whisker s0\" d=\"M102.0 250.0H110.0M106.0 250.0V110.0M102.0 "
                                   "110.0H110.0\""));
  CHECK(count_of(whiskers, "whisker") == 2);
  chart.series[0].ranges = ChartRanges::kBand;
  chart.series[0].points.assign(25, {0.5, 0.5, false, 0.25, 0.75});
  CHECK(count_of(to_svg(chart), "<circle") == 9 + 1);  // of 25 points every third, and the legend's
  CHECK(count_of(whiskers, "class=\"band") == 0);
}

TEST_CASE("bench page: nine jobs have nine styles, and throughput counts the same runs as the tables") {
  BenchResult result = some_result({});
  result.plan.seeds = {1};
  for (std::size_t i = 0; i < 9; ++i) {
    if (i > 0) result.plan.cases.push_back(result.plan.cases.front());
    result.plan.cases[i].name = result.plan.cases[i].series_name = "job " + std::to_string(i + 1);
    BenchRun& run = result.runs.emplace_back(reached_after(1, 2, 20.0));
    run.case_index = i;
    run.learners = 1 << i;
  }
  const std::string page = to_page(result);
  CHECK(count_of(page, series_key(0) + "job 1</li>") == 4);
  CHECK(count_of(page, series_key(8) + "job 9</li>") == 4);
  CHECK(count_of(page, "<polygon class=\"s0 marked\"") == 1);  // where it reached the target

  for (const BenchOutcome outcome : {BenchOutcome::kDied, BenchOutcome::kStopped}) {
    result.runs[8].outcome = outcome;
    result.runs[8].images_per_second = 1e6;
    const std::string without = to_page(result);
    CHECK(count_of(without, series_key(8) + "job 9</li>") == 3);
    const std::string chart = without.substr(without.find("<title>Throughput over learners"));
    CHECK(chart.substr(0, chart.find("</figure>")).find("1,000,000") == std::string::npos);
  }
}

TEST_CASE("bench report: with a validation set, the target applies to its accuracy") {
  BenchRun run = reached_after(1, 2, 20.0);
  run.accuracy_set = EvaluationSet::kValidation;
  run.test_accuracy = 0.5;
  run.best_test_accuracy.reset();
  run.validation_accuracy = 0.9;
  run.best_validation_accuracy = 0.95;
  CHECK(run.best_accuracy() == 0.95);
  CHECK(run.final_accuracy() == 0.9);
  for (BenchEpoch& row : run.rows) {
    row.validation_accuracy = row.test_accuracy;
    row.test_accuracy.reset();
  }
  BenchResult result = some_result({run});
  CHECK(result.plan.accuracy_text() == "test accuracy");
  result.plan.cases[0].accuracy_set = EvaluationSet::kValidation;
  CHECK(result.plan.accuracy_text() == "validation accuracy");
  CHECK_THAT(to_text(result), ContainsSubstring("reached 90.00 % validation accuracy"));
  const ordered_json json = to_json(result)["cases"][0]["runs"][0];
  CHECK(json["accuracy_set"] == "validation");
  CHECK(json["validation_accuracy"] == 0.9);
  CHECK(json["best_validation_accuracy"] == 0.95);
  CHECK(json["test_accuracy"] == 0.5);
  CHECK(json["epoch_rows"][1]["validation_accuracy"] == 0.9);
  CHECK_FALSE(json["epoch_rows"][1].contains("test_accuracy"));
  CHECK(json["best_test_accuracy"].is_null());
  const std::string page = to_page(result);
  CHECK_THAT(page, ContainsSubstring("<h1>Time to 90.00 % validation accuracy</h1>") &&
                       ContainsSubstring("<title>Validation accuracy over epochs (medians and ranges)</title>"));
  CHECK_THAT(to_mllog(result, run), ContainsSubstring("\"key\":\"eval_accuracy\",\"value\":0.9,"));

  result.plan.cases.push_back(result.plan.cases[0]);
  result.plan.cases[1].accuracy_set = EvaluationSet::kTest;
  CHECK(result.plan.accuracy_text() == "accuracy");
  CHECK_FALSE(to_json(some_result({reached_after(1, 2, 20.0)}))["cases"][0]["runs"][0].contains("validation_accuracy"));
}

TEST_CASE("bench run: a run's files are read back, and the error for a damaged one names it") {
  const tests::TemporaryDirectory directory;
  BenchRun run;
  CHECK_THAT(read_run(directory.path(), true, run), ContainsSubstring("no summary.json"));
  tests::write_text(directory / "summary.json", R"({"status": "target_reached"})");
  CHECK_THAT(read_run(directory.path(), true, run), ContainsSubstring("cannot be read"));
  tests::write_text(directory / "metrics.jsonl",
                    "{\"event\": \"start\", \"elapsed_seconds\": 1.5}\n"
                    "{\"event\": \"epoch\", \"epoch\": 1, \"elapsed_seconds\": 5.5, \"test_accuracy\": 0.75, "
                    "\"training_seconds\": 3, \"evaluation_seconds\": 1}\n"
                    "{\"event\": \"trace\", \"epoch\": 1, \"device_busy\": 0.5, \"averaging_wait\": 0.25, "
                    "\"input_wait\": 0.125}\n");
  tests::write_text(directory / "summary.json",
                    R"({"status": "completed", "message": "", "learners": 2, "epochs": 1, "train_seconds": 6.0,
                        "time_to_accuracy_seconds": null, "images_per_second": 100.0, "test_accuracy": 0.75,
                        "best_test_accuracy": 0.75, "accuracy_set": "test", "examples": 300})");
  run = {};
  REQUIRE(read_run(directory.path(), true, run).empty());
  CHECK(run.outcome == BenchOutcome::kNotReached);
  CHECK_FALSE(run.validation_accuracy.has_value());
  CHECK(run.phases.preparation == 1.5);
  CHECK(run.phases.training == Approx(3.0));
  CHECK(run.phases.working == 1.5);
  CHECK(run.phases.averaging_wait == 0.75);
  CHECK(run.phases.evaluation == 1.0);
  CHECK(run.phases.other == Approx(0.5));
  CHECK(*run.seconds_per_epoch() == Approx(4.0));
  // A roll-back loses the epochs behind its checkpoint; the run trains them again.
  tests::write_text(directory / "metrics.jsonl", [] {
    std::string log = "{\"event\": \"start\", \"elapsed_seconds\": 1.5}\n";
    const auto add_epoch = [&](int epoch, double seconds) {
      log += fmt::format(
          "{{\"event\": \"epoch\", \"epoch\": {}, \"elapsed_seconds\": {}, \"test_accuracy\": 0.5, "
          "\"training_seconds\": 3, \"evaluation_seconds\": 1}}\n",
          epoch, seconds);
    };
    for (const int epoch : {1, 2, 3}) add_epoch(epoch, 1.5 + epoch);
    log += "{\"event\": \"rollback\", \"epoch\": 3.5, \"to_epoch\": 1.002}\n";
    for (const int epoch : {2, 3}) add_epoch(epoch, 4.5 + epoch);
    return log;
  }());
  BenchRun back;
  REQUIRE(read_run(directory.path(), true, back).empty());
  REQUIRE(back.rows.size() == 3);
  CHECK(back.rows[0].elapsed_seconds == 2.5);
  CHECK(back.rows[1].elapsed_seconds == 6.5);
  CHECK(back.phases.evaluation == 3.0);
  BenchRun without_target;
  REQUIRE(read_run(directory.path(), false, without_target).empty());
  CHECK(without_target.outcome == BenchOutcome::kCompleted);
  CHECK(without_target.is_measured());
  CHECK(run.accuracy_set == EvaluationSet::kTest);
  CHECK(run.best_accuracy() == 0.75);
  CHECK_FALSE(run.rows[0].validation_accuracy.has_value());
  tests::write_text(directory / "metrics.jsonl",
                    "{\"event\": \"start\", \"elapsed_seconds\": 1.5}\n"
                    "{\"event\": \"epoch\", \"epoch\": 1, \"elapsed_seconds\": 5.5, "
                    "\"validation_accuracy\": 0.5, \"training_seconds\": 3, \"evaluation_seconds\": 1}\n");
  tests::write_text(directory / "summary.json",
                    R"({"status": "completed", "message": "", "learners": 2, "epochs": 1, "train_seconds": 6.0,
                        "time_to_accuracy_seconds": null, "images_per_second": 100.0, "test_accuracy": 0.75,
                        "best_test_accuracy": null, "accuracy_set": "validation", "validation_accuracy": 0.5,
                        "best_validation_accuracy": 0.625, "examples": 300})");
  BenchRun validated;
  REQUIRE(read_run(directory.path(), true, validated).empty());
  CHECK(validated.accuracy_set == EvaluationSet::kValidation);
  CHECK(validated.validation_accuracy == 0.5);
  CHECK(validated.best_accuracy() == 0.625);
  CHECK(validated.rows.at(0).decisive_accuracy() == 0.5);
  CHECK_FALSE(validated.rows.at(0).test_accuracy.has_value());
  CHECK(validated.test_accuracy == 0.75);
  CHECK_FALSE(validated.best_test_accuracy.has_value());
  tests::write_text(directory / "log", "first\n\n  the last \n \n");
  CHECK(last_line(directory / "log") == "  the last ");
}

}  // namespace arbalest::jobs
