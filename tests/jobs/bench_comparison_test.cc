// Accuracies in a bench: by epoch, over learners, with and without a target. Tables, Markdown and charts.
#include <string>
#include <vector>

#include "study/bench/bench_charts.h"
#include "study/bench/bench_mllog.h"
#include "study/bench/bench_page.h"
#include "study/bench/bench_report.h"
#include "study/bench/bench_tables.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {
namespace {

// A run with one epoch per accuracy.
BenchRun run_of(std::size_t case_index, std::uint64_t seed, int learners, const std::vector<double>& accuracies) {
  BenchRun run;
  run.case_index = case_index;
  run.seed = seed;
  run.outcome = BenchOutcome::kCompleted;
  run.directory = "1-job/seed-" + std::to_string(seed);
  run.log = run.directory + ".log";
  run.learners = learners;
  run.epochs = static_cast<int>(accuracies.size());
  run.images_per_second = 1000.0;
  run.train_seconds = 10.0;
  for (const double accuracy : accuracies) {
    BenchEpoch& row = run.rows.emplace_back();
    row.epoch = static_cast<int>(run.rows.size());
    row.elapsed_seconds = row.epoch;
    row.train_accuracy = accuracy / 2.0;
    row.test_accuracy = accuracy;
    run.test_accuracy = accuracy;
    run.best_test_accuracy = std::max(run.best_test_accuracy.value_or(0.0), accuracy);
  }
  run.replica_distance = 0.5 * static_cast<double>(learners);
  return run;
}

// Two schemes with 1 and 4 learners, two seeds.
BenchResult some_result() {
  BenchResult result;
  result.plan.seeds = {1, 2};
  for (const char* series : {"sma", "s|gd"}) {
    for (const char* learners : {"1 learner", "4 learners"}) {
      BenchCase& of = result.plan.cases.emplace_back();
      of.job = "job";
      of.series_name = series;
      of.name = of.label = of.series_name + ", " + learners;
    }
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const double base = 0.5 + 0.1 * static_cast<double>(i);
    const int learners = i % 2 == 0 ? 1 : 4;
    result.runs.push_back(run_of(i, 1, learners, {base, base + 0.05}));
    result.runs.push_back(run_of(i, 2, learners, {base + 0.02, base + 0.01}));
  }
  return result;
}

}  // namespace

TEST_CASE("bench comparison: a table has the first and last epochs, and round numbers between") {
  CHECK(shown_epochs(0).empty());
  CHECK(shown_epochs(1) == std::vector<int>{1});
  CHECK(shown_epochs(3) == std::vector<int>{1, 2, 3});
  CHECK(shown_epochs(8) == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(shown_epochs(10) == std::vector<int>{1, 2, 4, 6, 8, 10});
  CHECK(shown_epochs(15) == std::vector<int>{1, 2, 4, 6, 8, 10, 12, 14, 15});
  CHECK(shown_epochs(30) == std::vector<int>{1, 5, 10, 15, 20, 25, 30});
  CHECK(shown_epochs(140) == std::vector<int>{1, 20, 40, 60, 80, 100, 120, 140});
  for (int last = 1; last < 3000; ++last) {
    const std::vector<int> epochs = shown_epochs(last);
    CHECK((epochs.size() <= 10 && epochs.front() == 1 && epochs.back() == last));
  }
}

TEST_CASE("bench comparison: an epoch has the median and range of the runs that reached it") {
  std::vector<BenchRun> runs = {run_of(0, 1, 2, {0.5, 0.6, 0.9}), run_of(0, 2, 2, {0.7, 0.8}), run_of(0, 3, 2, {0.1})};
  runs[2].outcome = BenchOutcome::kStopped;
  const std::vector<BenchEpochSpread> spreads = spreads_by_epoch(runs);
  REQUIRE(spreads.size() == 3);
  CHECK(spreads[0].runs == 2);
  CHECK(*spreads[0].test_accuracy.median == Approx(0.6));
  CHECK(*spreads[0].test_accuracy.least == 0.5);
  CHECK(*spreads[0].test_accuracy.most == 0.7);
  CHECK(spreads[2].epoch == 3);
  CHECK(spreads[2].runs == 1);
  CHECK(*spreads[2].test_accuracy.median == 0.9);
  CHECK_FALSE(spreads[0].validation_accuracy.median.has_value());

  BenchResult result;
  result.plan.seeds = {1, 2, 3};
  result.plan.cases.emplace_back().name = "job";
  result.runs = runs;
  CHECK(epoch_rows(result, true) ==
        TableRows{{"job", "1", "2", "3"}, {"job", "60.00 (50.00 to 70.00)", "70.00 (60.00 to 80.00)", "90.00 [1]"}});
  CHECK(epoch_rows(result, false)[1] == std::vector<std::string>{"job", "60.00", "70.00", "90.00 [1]"});
  CHECK_THAT(table_notes(result), ContainsSubstring("[2] means that 2 runs"));
}

TEST_CASE("bench comparison: output without a target does not mention one") {
  const BenchResult result = some_result();
  CHECK(time_rows(result).empty());
  CHECK(accuracy_rows(result)[0] ==
        std::vector<std::string>{"job", "completed", "test accuracy, %", "best, %", "images/s", "replica distance"});
  CHECK(accuracy_rows(result)[1] == std::vector<std::string>{"sma, 1 learner", "2 of 2", "53.00 (51.00 to 55.00)",
                                                             "53.50 (52.00 to 55.00)", "1,000 (1,000 to 1,000)",
                                                             "0.50 (0.50 to 0.50)"});
  for (const std::string& text : {to_text(result), to_page(result), to_markdown(result)}) {
    CHECK(text.find("target") == std::string::npos);
    CHECK(text.find("reached") == std::string::npos);
    CHECK_THAT(text, ContainsSubstring("sma, 4 learners"));
  }
  const nlohmann::ordered_json json = to_json(result);
  CHECK(json["target_accuracy"].is_null());
  CHECK(json["target_reads"].is_null());
  CHECK(json["cases"][1]["name"] == "sma, 4 learners");
  CHECK(json["cases"][1]["series"] == "sma");
  CHECK(json["cases"][1]["replica_distance"]["median"] == 2.0);
  CHECK(json["cases"][1]["epoch_accuracy"][1]["test_accuracy"]["most"].get<double>() == Approx(0.65));
  CHECK(json["cases"][1]["epoch_accuracy"][1]["train_accuracy"]["most"].get<double>() == Approx(0.325));
  CHECK(json["cases"][1]["runs"][0]["outcome"] == "completed");
  CHECK(to_mllog(result, result.runs[0]).find("quality_target") == std::string::npos);
}

TEST_CASE("bench comparison: a validation set has its own columns and curve, and the target applies to it") {
  BenchResult result = some_result();
  result.plan.target = 0.9;
  CHECK(accuracy_over_epochs(result).level == 0.9);
  for (BenchRun& run : result.runs) {
    for (BenchEpoch& row : run.rows) {
      row.validation_accuracy = 0.25;
      row.test_accuracy.reset();
    }
    run.validation_accuracy = run.best_validation_accuracy = 0.25;
    run.best_test_accuracy.reset();
  }
  for (BenchCase& of : result.plan.cases) of.accuracy_set = EvaluationSet::kValidation;
  CHECK(accuracy_rows(result)[0] == std::vector<std::string>{"job", "reached", "test accuracy, %",
                                                             "validation accuracy, %", "best, %", "images/s",
                                                             "replica distance"});
  CHECK(accuracy_rows(result)[1][2] == "53.00 (51.00 to 55.00)");  // at the end
  CHECK(accuracy_rows(result)[1][3] == "25.00 (25.00 to 25.00)");
  CHECK(epoch_rows(result, false)[1] == std::vector<std::string>{"sma, 1 learner", "25.00", "25.00"});
  CHECK_THAT(to_text(result), ContainsSubstring("validation accuracy after epochs, %") &&
                                  ContainsSubstring("the test set is evaluated once, at the end of a run"));
  CHECK_THAT(to_markdown(result), ContainsSubstring("## Validation accuracy after epochs, %") &&
                                      ContainsSubstring("![Validation accuracy over epochs]"));
  const LineChart chart = accuracy_over_epochs(result);
  CHECK(chart.level == 0.9);
  CHECK(chart.title == "Validation accuracy over epochs (medians and ranges)");
  CHECK(chart.series[0].points[0].y == 0.25);
  CHECK(to_json(result)["target_reads"] == "validation accuracy");
  CHECK_THAT(to_page(result), ContainsSubstring("Time to 90.00 % validation accuracy") &&
                                  ContainsSubstring("Validation accuracy over epochs"));
}

TEST_CASE("bench comparison: each series has a curve of medians with ranges, over epochs and over learners") {
  const BenchResult result = some_result();
  const LineChart epochs = accuracy_over_epochs(result);
  REQUIRE(epochs.series.size() == 4);
  CHECK(epochs.series[3].name == "s|gd, 4 learners");
  CHECK(epochs.series[3].ranges == ChartRanges::kBand);
  REQUIRE(epochs.series[3].points.size() == 2);
  CHECK(epochs.series[3].points[0].y == Approx(0.81));
  CHECK(*epochs.series[3].points[0].least == Approx(0.80));
  CHECK(*epochs.series[3].points[0].most == Approx(0.82));

  const std::optional<LineChart> learners = accuracy_over_learners(result);
  REQUIRE(learners.has_value());
  REQUIRE(learners->series.size() == 2);
  CHECK(learners->series[0].name == "sma");
  CHECK(learners->series[1].name == "s|gd");
  CHECK(learners->series[1].ranges == ChartRanges::kWhiskers);
  REQUIRE(learners->series[1].points.size() == 2);
  CHECK(learners->series[1].points[1].x == 4.0);
  CHECK(learners->series[1].points[1].y == Approx(0.83));
  CHECK(*learners->series[1].points[1].least == Approx(0.81));
  CHECK(learners->series[0].shift == -learners->series[1].shift);
}

TEST_CASE("bench comparison: accuracy over learners is drawn only if their number varies") {
  const tests::TemporaryDirectory directory;
  BenchResult result = some_result();
  write_bench(result, directory.path());
  CHECK_THAT(tests::read_text(directory / kLearnerChart), ContainsSubstring("prefers-color-scheme:dark"));
  CHECK_THAT(tests::read_text(directory / kEpochChart), ContainsSubstring("s|gd, 4 learners</text>"));
  CHECK_THAT(tests::read_text(directory / kBenchMarkdown), ContainsSubstring("](accuracy-over-learners.svg)") &&
                                                               ContainsSubstring("| s\\|gd, 4 learners | 2 of 2 |"));
  for (BenchRun& run : result.runs) run.learners = 2;
  CHECK_FALSE(accuracy_over_learners(result).has_value());
  write_bench(result, directory.path());
  CHECK_FALSE(std::filesystem::exists(directory / kLearnerChart));
  CHECK(to_markdown(result).find(kLearnerChart) == std::string::npos);
}

TEST_CASE("bench comparison: a bench without results still has tables and charts") {
  BenchResult result = some_result();
  for (BenchRun& run : result.runs) {
    const std::size_t of = run.case_index;
    run = BenchRun();
    run.case_index = of;
  }
  CHECK(epoch_rows(result, true).empty());
  CHECK(accuracy_rows(result)[1] ==
        std::vector<std::string>{"sma, 1 learner", "0 of 2, 2 not run to the end", "-", "-", "-", "-"});
  const tests::TemporaryDirectory directory;
  write_bench(result, directory.path());
  for (const char* name : {kBenchPage, kBenchMarkdown, kEpochChart}) {
    const std::string text = tests::read_text(directory / name);
    CHECK(text.find("nan") == std::string::npos);
    CHECK(text.find("inf") == std::string::npos);
  }
}

TEST_CASE("bench comparison: a resumed bench says when it was resumed and what has changed") {
  BenchResult result = some_result();
  result.resumptions = {{"2026-01-31T14:25:30Z", 3, {"source_commit", "processor"}}};
  for (const std::string& text : {to_text(result), to_page(result), to_markdown(result)}) {
    CHECK_THAT(text, ContainsSubstring("Resumed at 2026-01-31T14:25:30Z after 3 of 8 runs; changed since the bench "
                                       "began: source_commit, processor."));
  }
}

}  // namespace arbalest::jobs
