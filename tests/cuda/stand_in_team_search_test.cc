// A run with `auto` on a GPU searches the number of learners and the size of their teams. The learners are real, but
// the seconds that the tuner sees are made up: launches bound a round, so larger teams are faster.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/resume_point.h"
#include "report/run_directory.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {

namespace {

// Watches a run, and is its clock.
class Launches final : public jobs::RunObserver {
 public:
  // The run looks at it equally often in every round.
  std::chrono::steady_clock::time_point now() {
    seconds_ += 0.5 + (team_ > 0 ? 0.2 * learners_ / team_ : 0.0);
    using Clock = std::chrono::steady_clock;
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds_)));
  }

  void on_start(const jobs::RunStart& start) override {
    started_with = {start.learners_per_device.front(), start.team};
    learners_ = start.learners_per_device.front();
    team_ = start.team;
  }
  void on_progress(const jobs::RunProgress& /*progress*/) override {}
  void on_epoch(const jobs::EpochRow& /*row*/) override {}
  void on_resize(const jobs::ResizeRow& row) override {
    CHECK(row.from.front() == learners_);
    CHECK(row.from_team == team_);
    CHECK(row.to.front() % row.to_team == 0);
    learners_ = row.to.front();
    team_ = row.to_team;
    rows.push_back(row);
    if (team_ == stops_in_teams_of) signal = 15;
  }
  void on_finish(const jobs::RunSummary& /*summary*/) override {}

  int team() const { return team_; }
  int learners() const { return learners_; }

  std::pair<int, int> started_with;  // learners and team
  std::vector<jobs::ResizeRow> rows;
  int stops_in_teams_of = 0;  // 0: it is not stopped
  std::atomic<int> signal{0};

 private:
  int learners_ = 0;
  int team_ = 0;
  double seconds_ = 0.0;
};

jobs::JobOptions tuned_job(int epochs, const std::vector<std::string>& settings = {}) {
  std::vector<std::string> all = {"devices=cuda:0", fmt::format("training.max_epochs={}", epochs),
                                  "training.target_accuracy=default", "learners.per_device.auto={max: 4}"};
  all.insert(all.end(), settings.begin(), settings.end());
  return load("logistic-digits.txtpb", all);
}

// Trains in `output`, as `arbalest train --output --resume=auto` does.
jobs::RunSummary train_in(const TemporaryDirectory& output, const jobs::JobOptions& job, Launches& launches) {
  jobs::RunDirectory directory(output.path(), job.name, jobs::ExistingRun::kContinue);
  std::optional<jobs::ResumePoint> point = jobs::newest_resume_point(output.path(), job, [](const std::string&) {});
  directory.continue_from(point ? &point->saved : nullptr);
  jobs::RunContext context;
  context.output_directory = output.path().string();
  context.observers = {&directory, &launches};
  context.stop_signal = &launches.signal;
  context.now = [&] { return launches.now(); };
  if (point) context.resumed = &point->saved;
  return jobs::train(job, context);
}

}  // namespace

TEST_CASE("a tuned run on a GPU finds larger teams, tells them, and its record replays", "[training][teams]") {
  cuda_stand_in::reset();
  const TemporaryDirectory directory;
  Launches launches;
  const jobs::RunSummary found = train_in(directory, tuned_job(5), launches);
  CHECK(found.status == jobs::RunStatus::kCompleted);
  CHECK(launches.started_with.second == 1);
  CHECK(launches.learners() == 4);
  CHECK(launches.team() == 4);
  REQUIRE_FALSE(launches.rows.empty());
  CHECK_THAT(launches.rows.back().reason, ContainsSubstring("4 learners in teams of 4 reached "));
  const auto only_teams = [](const jobs::ResizeRow& row) { return row.changes() && row.to == row.from; };
  CHECK(std::ranges::any_of(launches.rows, only_teams));

  std::istringstream lines(read_text(directory.path() / "metrics.jsonl"));
  std::vector<nlohmann::json> resizes;
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json row = nlohmann::json::parse(line);
    if (row.at("event") == "resize") resizes.push_back(std::move(row));
  }
  REQUIRE(resizes.size() == launches.rows.size());
  CHECK(resizes.back().at("team") == 4);
  CHECK(resizes.front().at("from_team") == 1);

  const jobs::JobOptions replay = jobs::load_job((directory.path() / "replay.txtpb").string());
  CHECK(replay.team == 4);
  const TemporaryDirectory again;
  CHECK(run(replay, again.path().string()).model_sha256 == found.model_sha256);
  cuda_stand_in::require_clean();
}

TEST_CASE("a tuned run that was stopped goes on with the teams that it had", "[training][teams]") {
  cuda_stand_in::reset();
  const TemporaryDirectory directory;
  Launches stopped;
  stopped.stops_in_teams_of = 2;
  CHECK(train_in(directory, tuned_job(1000), stopped).status == jobs::RunStatus::kStopped);
  REQUIRE(stopped.team() == 2);
  Launches resumed;
  resumed.stops_in_teams_of = 4;
  CHECK(train_in(directory, tuned_job(1000), resumed).status == jobs::RunStatus::kStopped);
  CHECK(resumed.started_with == std::pair(stopped.learners(), 2));
  CHECK(resumed.team() == 4);
  cuda_stand_in::require_clean();
}

TEST_CASE("a tuned run keeps the size of teams that the job names", "[training][teams]") {
  cuda_stand_in::reset();
  const std::string setting = GENERATE("learners.per_device.team=2", "learners.per_device.team=1");
  CAPTURE(setting);
  const jobs::JobOptions job = tuned_job(1, {setting});
  CHECK_FALSE(job.tunes_team);
  const TemporaryDirectory directory;
  class Rows final : public jobs::RunObserver {
   public:
    void on_progress(const jobs::RunProgress& /*progress*/) override {}
    void on_epoch(const jobs::EpochRow& /*row*/) override {}
    void on_resize(const jobs::ResizeRow& row) override {
      ++resizes;
      CHECK(row.to_team == 0);
    }
    void on_start(const jobs::RunStart& /*start*/) override {}
    void on_finish(const jobs::RunSummary& /*summary*/) override {}
    int resizes = 0;
  } rows;
  jobs::RunContext context;
  context.observers = {&rows};
  CHECK(jobs::train(job, context).status == jobs::RunStatus::kCompleted);
  CHECK(rows.resizes > 0);
}

}  // namespace arbalest::tests
