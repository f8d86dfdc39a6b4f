// Traced runs: tracing does not change the training, and the file has the time of every task.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "report/trace.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {
namespace {

using nlohmann::json;

struct Span {
  std::string name;
  double begin = 0.0;  // microseconds
  double end = 0.0;
};

// Spans by track, in the order of the file.
std::map<std::string, std::vector<Span>> tracks_of(const json& trace) {
  std::map<int, std::string> names;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") names[event["tid"]] = event["args"]["name"];
  }
  std::map<std::string, std::vector<Span>> tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"];
    CHECK(event["dur"] >= 0.0);
    REQUIRE(names.contains(event["tid"]));
    tracks[names[event["tid"]]].push_back({event["name"], begin, begin + event["dur"].get<double>()});
  }
  return tracks;
}

std::ptrdiff_t count_of(const std::vector<Span>& spans, const std::string& name) {
  return std::ranges::count(spans, name, &Span::name);
}

jobs::RunContext context_for(jobs::Trace& trace, const std::string& output) {
  jobs::RunContext context;
  context.output_directory = output;
  context.observers = {&trace};
  context.device_options.observer = &trace;
  context.training_input = &trace.training_input();
  context.evaluation_input = &trace.evaluation_input();
  return context;
}

jobs::JobOptions small_job(const char* learners) {
  return load("logistic-digits.txtpb", {"training.max_epochs=2", "training.batch_size=100",
                                        std::string("learners.per_device.fixed=") + learners});
}

constexpr double kRounding = 0.002;  // microseconds: times have three digits

// Checks that in the "run" track each span is inside the previous span that has not ended.
void check_nests(const std::vector<Span>& spans) {
  std::vector<Span> open;
  for (const Span& span : spans) {
    while (!open.empty() && open.back().end <= span.begin + kRounding) open.pop_back();
    if (!open.empty()) CHECK(span.end <= open.back().end + kRounding);
    open.push_back(span);
  }
}

}  // namespace

TEST_CASE("trace: a traced run gives the same bytes, and its file has every task of every learner", "[training]") {
  for (const char* learners : {"1", "2"}) {
    const TemporaryDirectory plain;
    const TemporaryDirectory traced;
    const jobs::JobOptions job = small_job(learners);
    const std::string expected = run(job, plain.path().string()).model_sha256;
    jobs::Trace trace(traced / "trace.json");
    const jobs::RunSummary summary = jobs::train(job, context_for(trace, traced.path().string()));
    CHECK(summary.model_sha256 == expected);
    CHECK(trace.dropped() == 0);

    const json file = json::parse(read_text(traced / "trace.json"));
    CHECK(file["otherData"]["dropped_spans"] == 0);
    const auto tracks = tracks_of(file);
    std::ptrdiff_t gradients = 0;
    std::ptrdiff_t evaluations = 0;
    for (const auto& [name, spans] : tracks) {
      if (name.find(" learner ") == std::string::npos) continue;
      INFO(name);
      for (std::size_t i = 1; i < spans.size(); ++i) CHECK(spans[i].begin >= spans[i - 1].end - kRounding);
      CHECK(count_of(spans, "gradient") == count_of(spans, "update"));
      gradients += count_of(spans, "gradient");
      evaluations += count_of(spans, "evaluate");
      if (summary.learners == 2) {
        CHECK(count_of(spans, "gradient") == 200);
        CHECK(count_of(spans, "wait for averaging's read") > 0);
      }
    }
    CHECK(gradients == 400);
    CHECK(evaluations > 0);
    CHECK(tracks.contains("cpu averaging") == (summary.learners == 2));
    CHECK(count_of(tracks.at("input"), "fill") > 0);
  }
}

TEST_CASE("trace: learners removed within an epoch count for the time that they existed", "[training]") {
  const TemporaryDirectory directory;
  jobs::Trace trace(directory / "trace.json");
  // 200 mini-batches; eight learners train all but the last 20.
  jobs::train(load("logistic-digits.txtpb",
                   {"training.max_epochs=1", "training.batch_size=100",
                    "learners.per_device.schedule={step { learners: 8 } step { at_batch: 176 learners: 1 }}"}),
              context_for(trace, ""));
  REQUIRE(trace.shares().has_value());
  CHECK(*trace.shares()->busy > 0.0);
  CHECK(*trace.shares()->busy + *trace.shares()->averaging_wait < 1.05);
}

TEST_CASE("trace: epochs contain training and evaluation, and learners' tasks change between them", "[training]") {
  const TemporaryDirectory directory;
  jobs::Trace trace(directory / "trace.json");
  CHECK(trace.epoch_text().empty());
  jobs::train(small_job("2"), context_for(trace, ""));
  const json file = json::parse(read_text(directory / "trace.json"));
  const auto tracks = tracks_of(file);
  const std::vector<Span>& run = tracks.at("run");
  std::vector<std::string> names;
  for (const Span& span : run) names.push_back(span.name);
  CHECK(names == std::vector<std::string>{"preparation", "epoch 1", "training", "evaluation", "epoch 2", "training",
                                          "evaluation", "end of the run"});
  check_nests(run);
  for (const auto& [name, spans] : tracks) {
    if (name.find(" learner ") == std::string::npos) continue;
    std::vector<std::string> changes;
    for (const Span& span : spans) {
      if (span.name != "gradient" && span.name != "evaluate") continue;
      if (changes.empty() || changes.back() != span.name) changes.push_back(span.name);
    }
    CHECK(changes == std::vector<std::string>{"gradient", "evaluate", "gradient", "evaluate"});
  }
  REQUIRE(trace.shares().has_value());
  CHECK(*trace.shares()->busy > 0.0);
  CHECK(*trace.shares()->busy + *trace.shares()->averaging_wait < 1.01);
  CHECK_THAT(trace.epoch_text(), ContainsSubstring("device busy ") && ContainsSubstring("averaging wait ") &&
                                     ContainsSubstring("input wait "));
  int shares = 0;
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] != "C") continue;
    ++shares;
    for (const char* name : {"device_busy", "averaging_wait", "input_wait"}) CHECK(event["args"].contains(name));
  }
  CHECK(shares == 2);
}

TEST_CASE("trace: the size is limited, and the file says what is missing", "[training]") {
  const TemporaryDirectory directory;
  jobs::Trace trace(directory / "trace.json", 10);
  jobs::train(small_job("2"), context_for(trace, ""));
  CHECK(trace.dropped() > 0);
  const json file = json::parse(read_text(directory / "trace.json"));
  CHECK(file["otherData"]["dropped_spans"] == trace.dropped());
  std::map<int, int> spans;
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] == "X") ++spans[event["tid"]];
  }
  for (const auto& [track, count] : spans) CHECK(count <= 10);
  CHECK(*trace.shares()->busy > 0.0);  // over all tasks, kept or not
}

TEST_CASE("trace: is written unless the run fails", "[training]") {
  const TemporaryDirectory directory;
  bool fails = true;
  SECTION("stopped") {
    std::atomic<int> signal{SIGTERM};
    jobs::Trace trace(directory / "trace.json");
    jobs::RunContext context = context_for(trace, "");
    context.stop_signal = &signal;
    CHECK(jobs::train(small_job("2"), context).status == jobs::RunStatus::kStopped);
    fails = false;
  }
  SECTION("failed") {
    std::filesystem::create_directory(directory / "model.safetensors");  // no file can replace a directory
    jobs::Trace trace(directory / "trace.json");
    CHECK_THROWS_AS(jobs::train(small_job("2"), context_for(trace, directory.path().string())), engine::Error);
  }
  SECTION("without data") {
    jobs::Trace trace(directory / "trace.json");
    jobs::RunContext context = context_for(trace, "");
    context.data_root = (directory / "nowhere").string();
    CHECK_THROWS_AS(jobs::train(load("lenet-mnist.txtpb", {}), context), engine::Error);
  }
  if (fails) {
    CHECK_FALSE(std::filesystem::exists(directory / "trace.json"));
  } else {
    CHECK_FALSE(json::parse(read_text(directory / "trace.json"))["traceEvents"].empty());
  }
}

TEST_CASE("trace: replaces no existing file, and a missing directory is an error at the start") {
  const TemporaryDirectory directory;
  write_text(directory / "there", "mine");
  CHECK_THROWS_WITH(jobs::Trace(directory / "there"), ContainsSubstring("it is there already"));
  CHECK_THROWS_WITH(jobs::Trace(directory / "none/trace.json"), ContainsSubstring("there is no directory"));
  CHECK(read_text(directory / "there") == "mine");
}

}  // namespace arbalest::tests
