// The event files of a run, read record by record: checksums, scalars, text and hyper-parameters.
#include "report/tensorboard/tensorboard_log.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/saved_run.h"
#include "dataflow/input/formats/records/record_file.h"
#include "report/run_directory.h"
#include "report/tensorboard/event_file.h"
#include "report/tensorboard/hyper_parameters.h"
#include "report/tensorboard/run_events.h"
#include "tests/jobs/reported_run.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

using tensorboard::Event;
using tests::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

fs::path event_file_in(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const bool is_event_file = entry.path().filename().string().starts_with(kEventFilePrefix);
    if (is_event_file && entry.file_size() > 0) found.push_back(entry.path());
  }
  REQUIRE(found.size() == 1);
  return found.front();
}

// RecordFile checks the checksums.
std::vector<Event> events_in(const fs::path& directory) {
  const dataflow::RecordFile file(event_file_in(directory));
  std::vector<Event> events(file.size());
  for (std::size_t i = 0; i < file.size(); ++i) {
    const std::vector<std::uint8_t> data = file.read(i);
    REQUIRE(events[i].ParseFromArray(data.data(), static_cast<int>(data.size())));
  }
  return events;
}

std::uintmax_t bytes_in(const fs::path& directory) {
  std::uintmax_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

using Point = std::pair<std::int64_t, float>;  // step and value

std::map<std::string, std::vector<Point>> scalars_in(const fs::path& directory) {
  std::map<std::string, std::vector<Point>> scalars;
  for (const Event& event : events_in(directory)) {
    for (const auto& value : event.summary().value()) {
      scalars[value.tag()].emplace_back(event.step(), value.simple_value());
    }
  }
  return scalars;
}

EpochRow row_at(int epoch, std::uint64_t batch) {
  EpochRow row = some_row();
  row.epoch = epoch;
  row.batch = batch;
  row.train.set("loss", 1.0 / epoch);
  row.elapsed_seconds = epoch;
  return row;
}

tensorboard::HParamsPluginData plugin_data(const Event& event, const std::string& tag) {
  tensorboard::HParamsPluginData data;
  for (const auto& value : event.summary().value()) {
    if (value.tag() == tag) REQUIRE(data.ParseFromString(value.metadata().plugin_data().content()));
  }
  return data;
}

}  // namespace

TEST_CASE("tensorboard: each epoch is a point of the training and the test curves, at its mini-batch") {
  const TemporaryDirectory directory;
  RunDirectory run(directory / "run", "trial");
  run.on_start(some_start());
  run.on_epoch(row_at(1, 100));
  EpochRow second = row_at(2, 201);
  second.largest_team = 4;
  run.on_epoch(second);
  const fs::path folder = directory / "run/tensorboard";
  const auto training = scalars_in(folder / "train");
  CHECK(training.at("team") == std::vector<Point>{{201, 4.0F}});
  CHECK(training.at("loss") == std::vector<Point>{{100, 1.0F}, {201, 0.5F}});
  CHECK(training.at("accuracy") == std::vector<Point>{{100, 0.75F}, {201, 0.75F}});
  CHECK(training.at("learners") == std::vector<Point>{{100, 3.0F}, {201, 3.0F}});
  for (const char* tag : {"learning_rate", "images_per_second", "replica_distance", "replica_spread"}) {
    CHECK(training.at(tag).size() == 2);
  }
  CHECK(scalars_in(folder / "test").at("accuracy") == std::vector<Point>{{100, 0.3F}, {201, 0.3F}});
  CHECK_FALSE(fs::exists(folder / "validation"));
  const std::vector<Event> events = events_in(folder / "train");
  CHECK(events[0].file_version() == "brain.Event:2");
  CHECK(events[1].session_log().status() == tensorboard::SessionLog::START);
  CHECK(events[3].wall_time() - events[2].wall_time() == Approx(1.0));
  CHECK(events[2].wall_time() > 1.7e9);  // seconds since 1970
}

TEST_CASE("tensorboard: schemes without rounds have curves of staleness in place of distances") {
  const TemporaryDirectory directory;
  RunDirectory run(directory / "run", "trial");
  run.on_start(some_start());
  EpochRow row = row_at(1, 100);
  row.replica_distance.reset();
  row.replica_spread.reset();
  row.staleness = {{0, 3}, {2, 1}};
  run.on_epoch(row);
  const auto training = scalars_in(directory / "run/tensorboard/train");
  CHECK(training.at("staleness_mean") == std::vector<Point>{{100, 0.5F}});
  CHECK(training.at("staleness_max") == std::vector<Point>{{100, 2.0F}});
  CHECK_FALSE(training.contains("replica_distance"));
  CHECK_FALSE(training.contains("replica_spread"));
}

TEST_CASE("tensorboard: a metric that the job adds is a curve of every set") {
  const TemporaryDirectory directory;
  RunDirectory run(directory / "run", "trial");
  RunStart start = some_start();
  start.metrics = tests::classifier_metrics(10, dataflow::AccuracyLayer({3}));
  run.on_start(start);
  EpochRow row = row_at(1, 100);
  row.train = Scores(start.metrics, {{1, 2, 3}}, 4);
  row.test = Scores(start.metrics, {{1, 2, 4}}, 4);
  run.on_epoch(row);
  CHECK(scalars_in(directory / "run/tensorboard/train").at("top3_accuracy") == std::vector<Point>{{100, 0.75F}});
  CHECK(scalars_in(directory / "run/tensorboard/test").at("top3_accuracy") == std::vector<Point>{{100, 1.0F}});
}

TEST_CASE("tensorboard: a run without mini-batches ends at the step of its last epoch") {
  const TemporaryDirectory directory;
  RunDirectory run(directory / "run", "trial");
  run.on_start(some_start());
  for (const int epoch : {1, 2}) {
    EpochRow row = row_at(epoch, 0);
    row.sparse = SparseProgress{.objective = 0.5, .step = 0.25};
    run.on_epoch(row);
  }
  RunSummary summary = some_summary();
  summary.is_sparse = true;
  run.on_finish(summary);
  CHECK(scalars_in(directory / "run/tensorboard/test").at("accuracy") == std::vector<Point>{{1, 0.3F}, {2, 0.3F}});
  CHECK(events_in(directory / "run/tensorboard").back().step() == 2);
  const auto training = scalars_in(directory / "run/tensorboard/train");
  CHECK(training.at("objective") == std::vector<Point>{{1, 0.5F}, {2, 0.5F}});
  CHECK(training.at("step") == std::vector<Point>{{1, 0.25F}, {2, 0.25F}});
  CHECK_FALSE(training.contains("learning_rate"));
}

TEST_CASE("tensorboard: a resize is a point, and a step back makes TensorBoard forget the steps after it") {
  const TemporaryDirectory directory;
  RunDirectory run(directory / "run", "trial");
  run.on_start(some_start());
  run.on_resize({.batch = 60, .from = {2, 1}, .to = {4, 1}, .reason = "faster", .evidence = {}});
  run.on_rollback({.batch = 90, .reason = "spike", .to_batch = 50, .learners_per_device = {2, 1}});
  const fs::path folder = directory / "run/tensorboard/train";
  CHECK(scalars_in(folder).at("learners") == std::vector<Point>{{60, 5.0F}});
  const Event last = events_in(folder).back();
  CHECK(last.session_log().status() == tensorboard::SessionLog::START);
  CHECK(last.step() == 51);
  CHECK_FALSE(fs::exists(directory / "run/tensorboard/validation"));  // the run has no such curve
}

TEST_CASE("tensorboard: the job is text and hyper-parameters, and the end of the run is that of the session") {
  const TemporaryDirectory directory;
  RunDirectory run(directory / "run", "trial");
  run.on_start(some_start());
  run.on_epoch(row_at(1, 100));
  RunSummary summary = some_summary();
  summary.mini_batches = 130;  // stopped within an epoch
  summary.test.set("loss", 0.25);
  run.on_finish(summary);
  const std::vector<Event> events = events_in(directory / "run/tensorboard");
  const Event& start = events.at(2);
  const auto text = std::ranges::find(start.summary().value(), "job", [](const auto& value) { return value.tag(); });
  REQUIRE(text != start.summary().value().end());
  CHECK(text->tensor().string_val(0) == "```\n" + some_start().job_text + "```\n");
  const auto session = plugin_data(start, "_hparams_/session_start_info").session_start_info();
  CHECK(session.hparams().at("learning_rate.base").number_value() == 0.01);
  CHECK_FALSE(session.hparams().contains("name"));
  const auto experiment = plugin_data(start, "_hparams_/experiment").experiment();
  CHECK(experiment.hparam_infos_size() == session.hparams_size());
  CHECK(experiment.metric_infos(0).name().group() == "test");
  CHECK(experiment.metric_infos_size() == static_cast<int>(some_start().metrics.size()));
  CHECK(experiment.metric_infos(2).name().tag() == "top5_accuracy");
  const auto end = plugin_data(events.back(), "_hparams_/session_end_info").session_end_info();
  CHECK(end.status() == tensorboard::SessionEndInfo::STATUS_SUCCESS);
  CHECK(scalars_in(directory / "run/tensorboard/test").at("loss") == std::vector<Point>{{100, 0.5F}, {130, 0.25F}});
}

TEST_CASE("tensorboard: a resumed run has the points of its log, and one file in each folder") {
  const TemporaryDirectory directory;
  std::uint64_t kept = 0;
  fs::path earlier;
  {
    RunDirectory run(directory / "run", "trial");
    run.on_start(some_start());
    run.on_epoch(row_at(1, 100));
    kept = run.log_bytes();
    run.on_epoch(row_at(2, 200));
    earlier = event_file_in(directory / "run/tensorboard/train");
  }
  SavedRun saved;
  saved.run.metrics_bytes = kept;
  RunDirectory run(directory / "run", "trial", ExistingRun::kContinue);
  run.continue_from(&saved);
  RunStart start = some_start();
  start.resumed =
      ResumeRow{.batch = 100, .epoch = 1.0, .elapsed_seconds = 1.0, .path = {}, .from = {2, 1}, .to = {1, 1, 1, 1}};
  run.on_start(start);
  const fs::path folder = directory / "run/tensorboard/train";
  CHECK(scalars_in(folder).at("loss") == std::vector<Point>{{100, 1.0F}});
  CHECK(event_file_in(folder) > earlier);  // TensorBoard goes on to names that come later ...
  CHECK(fs::file_size(earlier) == 0);      // ... from files that are there
  EpochRow row = row_at(4, 300);
  row.learners_per_device = {1, 1, 1, 1};  // the log has one number for all devices
  run.on_epoch(row);
  CHECK(scalars_in(folder).at("loss") == std::vector<Point>{{100, 1.0F}, {300, 0.25F}});
  CHECK(scalars_in(folder).at("learners") == std::vector<Point>{{100, 3.0F}, {300, 4.0F}});
}

TEST_CASE("tensorboard: a run that goes on before its first epoch ended has no curves") {
  const TemporaryDirectory directory;
  {
    RunDirectory run(directory / "run", "trial");
    run.on_start(some_start());
    run.on_epoch(row_at(1, 100));
  }
  RunDirectory run(directory / "run", "trial", ExistingRun::kContinue);
  run.continue_from(nullptr);  // the run begins anew
  run.on_start(some_start());
  for (const char* folder : {"train", "test"}) CHECK(bytes_in(directory / "run/tensorboard" / folder) == 0);
  CHECK(events_in(directory / "run/tensorboard").size() == 3);
}

TEST_CASE("tensorboard: event files that were deleted are written again, with all their points") {
  const TemporaryDirectory directory;
  RunDirectory run(directory / "run", "trial");
  run.on_start(some_start());
  run.on_epoch(row_at(1, 100));
  fs::remove_all(directory / "run/tensorboard");
  run.on_epoch(row_at(2, 200));
  CHECK(scalars_in(directory / "run/tensorboard/train").at("loss").size() == 2);
  CHECK(scalars_in(directory / "run/tensorboard/test").at("loss").size() == 2);
  CHECK(events_in(directory / "run/tensorboard").size() == 3);
}

TEST_CASE("tensorboard: a new run does not touch event files that are there") {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "run/tensorboard/train");
  const fs::path file = directory / "run/tensorboard/train" / (std::string(kEventFilePrefix) + "1234567890.host.1.0");
  std::ofstream(file) << "somebody's";
  CHECK(failure([&] { RunDirectory(directory / "run", "trial"); }) == engine::ErrorKind::kUsage);
  CHECK(fs::file_size(file) == 10);
  CHECK_FALSE(fs::exists(directory / "run/metrics.jsonl"));
}

TEST_CASE("tensorboard: lines without fields, of other types and of other events make no points") {
  RunEvents events(some_start().job_text);
  for (const char* line : {R"({})", R"({"time": "now", "devices": 3, "accuracy_set": 1, "elapsed_seconds": []})",
                           R"({"learners_per_device": {"a": "b"}, "batch": "1", "status": {}, "to_batch": null})"}) {
    const auto row = nlohmann::ordered_json::parse(line);
    for (const char* name : {"start", "resume", "epoch", "resize", "rollback", "finish", "checkpoint", "unknown"}) {
      for (const CurveEvent& made : events.of(name, row)) {
        for (const auto& value : made.event.summary().value()) CHECK_FALSE(value.has_simple_value());
      }
    }
  }
}

TEST_CASE("tensorboard: lines that a full disk refused are in the files once there is room again") {
  const TemporaryDirectory directory;
  RunDirectory run(directory / "run", "trial");
  std::vector<std::string> told;
  run.warn_with([&](const std::string& text) { told.push_back(text); });
  run.on_start(some_start());
  run.on_epoch(row_at(1, 100));
  const fs::path folder = directory / "run/tensorboard/train";
  {
    const FileSizeLimit limit(fs::file_size(directory / "run/metrics.jsonl"));
    run.on_epoch(row_at(2, 200));
  }
  run.on_epoch(row_at(3, 300));
  CHECK(scalars_in(folder).at("loss").size() == 3);
  REQUIRE(told.size() == 2);
  CHECK_THAT(told[1], ContainsSubstring("nothing is missing"));
}

TEST_CASE("tensorboard: hyper-parameters are the single values of a job, with their types") {
  const auto values = hyper_parameters(
      "name: \"x\"\nmodel { layers { name: \"a\" } }\ntraining { batch_size: 32 seed: 7 precision: BF16 }\n"
      "learning_rate { base: 0.5 cosine {} }\ndevices: \"cpu\"\n");
  CHECK(values.at("training.batch_size").number_value() == 32);
  CHECK(values.at("training.precision").string_value() == "BF16");
  CHECK(values.at("learning_rate.base").number_value() == 0.5);
  for (const char* absent : {"name", "devices", "model.layers"}) CHECK_FALSE(values.contains(absent));
}

}  // namespace arbalest::jobs
