// The file for Prometheus: a parser of its format, written from the format's description, reads what a run writes.
#include "report/prometheus/prometheus_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "report/prometheus/prometheus_text.h"
#include "tests/jobs/reported_run.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

using tests::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

// The samples by name and labels. Fails on any line that is not of the format, on a metric without HELP and TYPE, or
// with two of them, and on two samples with the same name and labels.
std::map<std::string, double> samples_in(const std::string& text) {
  static const std::regex kHelp(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) [^\\]+)");
  static const std::regex kType(R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge))");
  static const std::regex kSample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\\\|\\"|\\n)*",?)*\}) (\S+))re");
  REQUIRE(text.ends_with('\n'));
  std::map<std::string, double> samples;
  std::set<std::string> described;
  std::string present;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    std::smatch match;
    if (std::regex_match(line, match, kHelp)) {
      present = match[1];
      CHECK(described.insert(present).second);
    } else if (std::regex_match(line, match, kType)) {
      CHECK(match[1] == present);
      CHECK((match[2] == "counter") == present.ends_with("_total"));
    } else {
      REQUIRE(std::regex_match(line, match, kSample));
      CHECK(match[1] == present);
      CHECK(samples.emplace(std::string(match[1]) + std::string(match[2]), std::stod(match[5])).second);
    }
  }
  return samples;
}

// A run in "/runs/one", with a file in `directory`.
struct WatchedRun {
  explicit WatchedRun(const TemporaryDirectory& directory) : path(directory / "run.prom"), file(path) {
    RunStart start = some_start();
    start.output_directory = "/runs/one";
    file.warn_with([this](const std::string& text) { told.push_back(text); });
    file.on_start(start);
  }

  std::map<std::string, double> samples() const { return samples_in(tests::read_text(path)); }
  double value(const std::string& name, const std::string& more = "") const {
    return samples().at(name + "{run=\"/runs/one\"" + more + "}");
  }

  fs::path path;
  PrometheusFile file;
  std::vector<std::string> told;
};

}  // namespace

TEST_CASE("prometheus: the file shows the present state of a run from its start to its end") {
  const TemporaryDirectory directory;
  WatchedRun run(directory);
  CHECK(run.value("arbalest_run_status", ",status=\"running\"") == 1.0);
  CHECK(run.value("arbalest_run_info", R"(,name="trial",model="",data="")") == 1.0);
  CHECK(run.value("arbalest_learners") == 3.0);
  CHECK(run.value("arbalest_team") == 1.0);
  CHECK_FALSE(run.samples().contains("arbalest_train_loss{run=\"/runs/one\"}"));  // nothing is known yet

  run.file.on_progress({.epoch = 0.5,
                        .max_epochs = 2,
                        .train_loss = 0.75,
                        .images_per_second = 1000.5,
                        .elapsed_seconds = 7.0,
                        .remaining_seconds = 21.0});
  CHECK(run.value("arbalest_epochs") == 0.5);
  CHECK(run.value("arbalest_train_loss") == 0.75);
  CHECK(run.value("arbalest_images_per_second") == 1000.5);
  CHECK(run.value("arbalest_remaining_seconds") == 21.0);

  EpochRow row = some_row();
  row.learning_rate = 1e-5;
  row.largest_team = 4;
  run.file.on_epoch(row);
  CHECK(run.value("arbalest_team") == 4.0);
  CHECK(run.value("arbalest_epochs") == 1.0);
  CHECK(run.value("arbalest_test_accuracy") == 0.1 + 0.2);  // all 17 digits
  CHECK(run.value("arbalest_learning_rate") == 1e-5);
  run.file.on_resize({.batch = 60, .from = {2, 1}, .to = {4, 1}, .reason = "faster", .evidence = {}});
  CHECK(run.value("arbalest_learners") == 5.0);
  run.file.on_checkpoint({.batch = 625, .path = "x"});
  CHECK(run.value("arbalest_checkpoint_mini_batches") == 625.0);
  run.file.on_warning("something");
  CHECK(run.value("arbalest_warnings_total") == 1.0);
  run.file.on_rollback({.batch = 90, .reason = "spike", .to_batch = 50, .to_epoch = 0.25, .learners_per_device = {2}});
  CHECK(run.value("arbalest_rollbacks_total") == 1.0);
  CHECK(run.value("arbalest_epochs") == 0.25);

  run.file.on_finish(some_summary());
  CHECK(run.value("arbalest_run_status", ",status=\"running\"") == 0.0);
  CHECK(run.value("arbalest_run_status", ",status=\"completed\"") == 1.0);
  CHECK(run.value("arbalest_remaining_seconds") == 0.0);
  CHECK(run.told.empty());
}

TEST_CASE("prometheus: what nothing measures has no sample") {
  const TemporaryDirectory directory;
  WatchedRun run(directory);
  EpochRow row = some_row();
  run.file.on_epoch(row);
  CHECK(run.value("arbalest_replica_distance") == 0.0);
  CHECK_THAT(tests::read_text(run.path), !ContainsSubstring("arbalest_staleness"));

  row.replica_distance.reset();
  row.replica_spread.reset();
  row.staleness = {{0, 12}, {3, 5}, {10, 1}};
  run.file.on_epoch(row);
  CHECK_THAT(tests::read_text(run.path), !ContainsSubstring("arbalest_replica"));
  CHECK(run.value("arbalest_staleness_mean") == 25.0 / 18.0);
  CHECK(run.value("arbalest_staleness_max") == 10.0);
}

TEST_CASE("prometheus: a run without mini-batches has a learning rate only if its scheme has one") {
  const TemporaryDirectory directory;
  WatchedRun run(directory);
  const auto has = [&](const std::string& name) { return run.samples().contains(name + "{run=\"/runs/one\"}"); };
  EpochRow row = some_row();
  row.sparse = SparseProgress{.objective = 0.5, .step = 0.25};
  run.file.on_epoch(row);
  CHECK(run.value("arbalest_test_loss") == 0.5);
  CHECK_FALSE(has("arbalest_learning_rate"));
  row.sparse->step.reset();
  row.learning_rate = 0.125;
  run.file.on_epoch(row);
  CHECK(run.value("arbalest_learning_rate") == 0.125);
}

TEST_CASE("prometheus: every metric that the model names is in the file, under its name") {
  const TemporaryDirectory directory;
  PrometheusFile file(directory / "run.prom");
  RunStart start = some_start();
  start.metrics = tests::classifier_metrics(10, dataflow::AccuracyLayer({3}));
  start.output_directory = "/runs/one";
  file.on_start(start);
  EpochRow row = some_row();
  row.train = Scores(start.metrics, {{1, 2, 3}}, 4);
  row.validation = Scores(start.metrics, {{1, 2, 4}}, 4);
  file.on_epoch(row);
  const std::map<std::string, double> samples = samples_in(tests::read_text(directory / "run.prom"));
  CHECK(samples.at("arbalest_train_loss{run=\"/runs/one\"}") == 0.25);  // the run tells no progress
  CHECK(samples.at("arbalest_train_top3_accuracy{run=\"/runs/one\"}") == 0.75);
  CHECK(samples.at("arbalest_validation_top3_accuracy{run=\"/runs/one\"}") == 1.0);
  CHECK(samples.at("arbalest_validation_loss{run=\"/runs/one\"}") == 0.25);
}

TEST_CASE("prometheus: progress is written every few seconds only") {
  const TemporaryDirectory directory;
  WatchedRun run(directory);
  for (const double seconds : {6.0, 8.0, 10.9}) run.file.on_progress({.epoch = seconds, .elapsed_seconds = seconds});
  CHECK(run.value("arbalest_epochs") == 6.0);
  run.file.on_progress({.epoch = 11.0, .elapsed_seconds = 11.0});
  CHECK(run.value("arbalest_epochs") == 11.0);
}

TEST_CASE("prometheus: labels and numbers are escaped as the format demands") {
  PrometheusText text(PrometheusLabels{{"run", "C:\\new \"line\"\nend"}});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  text.add({"a", PrometheusText::Type::kGauge, "A"}, -kInfinity);
  text.add({"b", PrometheusText::Type::kGauge, "B"}, kInfinity);
  text.add({"c_total", PrometheusText::Type::kCounter, "C"}, std::numeric_limits<double>::quiet_NaN());
  text.add({"d", PrometheusText::Type::kGauge, "D"}, std::nullopt);
  const std::string label = R"({run="C:\\new \"line\"\nend"})";
  CHECK(text.text() == "# HELP a A\n# TYPE a gauge\na" + label + " -Inf\n# HELP b B\n# TYPE b gauge\nb" + label +
                           " +Inf\n# HELP c_total C\n# TYPE c_total counter\nc_total" + label + " NaN\n");
  CHECK(samples_in(text.text()).size() == 3);
}

TEST_CASE("prometheus: a reader that holds the old file open keeps it whole, because the file is replaced") {
  const TemporaryDirectory directory;
  WatchedRun run(directory);
  std::ifstream reader(run.path);
  const std::string before = tests::read_text(run.path);
  run.file.on_finish(some_summary());
  std::ostringstream read;
  read << reader.rdbuf();
  CHECK(read.str() == before);
  CHECK(tests::read_text(run.path) != before);
  CHECK(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator()) == 1);  // nothing partial
}

TEST_CASE("prometheus: a file that cannot be written is told once, and the run goes on") {
  const TemporaryDirectory directory;
  fs::create_directory(directory / "metrics");
  PrometheusFile file(directory / "metrics/run.prom");
  std::vector<std::string> told;
  file.warn_with([&](const std::string& text) { told.push_back(text); });
  file.on_start(some_start());
  fs::rename(directory / "metrics", directory / "other");
  file.on_epoch(some_row());
  file.on_epoch(some_row());
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], ContainsSubstring("cannot write") && ContainsSubstring("the run goes on without that file"));
  fs::rename(directory / "other", directory / "metrics");
  file.on_finish(some_summary());
  REQUIRE(told.size() == 2);
  CHECK_THAT(told[1], ContainsSubstring("can be written again"));
  CHECK(samples_in(tests::read_text(directory / "metrics/run.prom")).size() > 5);
}

TEST_CASE("prometheus: only a file of this kind is replaced") {
  const TemporaryDirectory directory;
  tests::write_text(directory / "own.txtpb", "name: \"own\"\n");
  for (const char* name : {"own.txtpb", "", "no/run.prom"}) {
    INFO(name);
    CHECK(failure([&] { PrometheusFile(directory / name); }) == engine::ErrorKind::kUsage);
  }
  tests::write_text(directory / "empty.prom", "");
  CHECK_FALSE(failure([&] { PrometheusFile(directory / "empty.prom"); }));
  { WatchedRun run(directory); }
  CHECK_FALSE(failure([&] { WatchedRun again(directory); }));
}

TEST_CASE("prometheus: a run that fails before it begins leaves no file") {
  const TemporaryDirectory directory;
  PrometheusFile file(directory / "run.prom");
  file.on_warning("data are missing");
  file.on_finish(some_summary());
  CHECK_FALSE(fs::exists(directory / "run.prom"));
}

}  // namespace arbalest::jobs
