// Whole runs whose training diverges and that go back to a checkpoint, through jobs::train.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_store.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"
#include "train/divergence/rollback_point.h"

namespace arbalest::tests {

namespace {

namespace fs = std::filesystem;
using jobs::RunStatus;

jobs::JobOptions job_with(const std::vector<std::string>& settings) {
  std::vector<std::string> all = {"training.on_divergence=ROLL_BACK", "checkpoint={every_epochs: 1 keep_last: 5}"};
  all.insert(all.end(), settings.begin(), settings.end());
  return short_job("lenet-digits.txtpb", all);
}

const std::string kSmallModel = "model={zoo {mlp {hidden: 32}}}";

// Diverges in its first mini-batches with the job's learning rate, and trains well with a thousandth of it.
jobs::JobOptions diverging(const std::vector<std::string>& settings = {}) {
  std::vector<std::string> all = {"learning_rate={base: 1000 with_learners: KEEP}", "training.rollback_factor=0.00002",
                                  "training.max_epochs=2", kSmallModel};
  all.insert(all.end(), settings.begin(), settings.end());
  return job_with(all);
}

std::vector<nlohmann::json> lines_of(const fs::path& output, const std::string& event) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(output / jobs::kMetricsFile);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(nlohmann::json::parse(line));
    if (lines.back().at("event") != event) lines.pop_back();
  }
  return lines;
}

// A run that has checkpoints of its start and of each of its three epochs.
struct TrainedRun {
  TrainedRun() { REQUIRE(all.size() == 4); }

  TemporaryDirectory output;
  fs::path checkpoints = jobs::checkpoints_of(output.path());
  std::vector<jobs::Checkpoint> all = [this] {
    train_part(job_with({"learning_rate.base=0.01", "synchronization={sma {}}"}), output.path());
    return jobs::list_checkpoints(checkpoints);
  }();
};

}  // namespace

TEST_CASE("a diverged run goes back to its start with a lower learning rate, and then trains like a run with that rate",
          "[divergence]") {
  for (const char* scheme : {"sma {}", "s_sgd {}", "local_sgd { period: 7 }"}) {
    CAPTURE(scheme);
    const std::string synchronization = std::string("synchronization={") + scheme + "}";
    const TemporaryDirectory output;
    const Part part = train_part(diverging({synchronization}), output.path());
    CHECK(part.summary.status == RunStatus::kCompleted);
    REQUIRE(part.rollbacks.size() == 1);
    const jobs::RollbackRow& row = part.rollbacks.front();
    CHECK(row.to_batch == 0);
    CHECK(row.rollbacks == 1);
    CHECK(row.factor == 0.00002);
    CHECK(row.elapsed_seconds > 0.0);
    CHECK_THAT(row.reason, ContainsSubstring("training diverged"));
    CHECK(fs::path(row.checkpoint).filename() == "000000000000");
    // The clock goes on: the epoch's time counts from the run's beginning.
    CHECK(part.rows.front().elapsed_seconds > row.elapsed_seconds);
    CHECK(part.rows.front().learning_rate == Approx(0.02));

    const auto lines = lines_of(output.path(), "rollback");
    REQUIRE(lines.size() == 1);
    CHECK(lines.front().at("factor") == 0.00002);
    CHECK(lines.front().at("rollbacks") == 1);
    CHECK(lines.front().at("to_epoch") == 0.0);
    CHECK(lines.front().contains("loss"));
    CHECK(lines.front().at("checkpoint") == row.checkpoint);

    // The checkpoint was written again, with everything that it held.
    const jobs::Checkpoint rewritten = jobs::open_checkpoint(row.checkpoint);
    CHECK(jobs::read_saved_run(rewritten).run.rollbacks.count == 1);
    const auto model = jobs::read_saved_model(rewritten);
    CHECK(model.size() == 4);
    CHECK(std::ranges::none_of(model, [](const auto& tensor) { return tensor.values.empty(); }));

    // float(1000) x 0.00002 is the float32 next to 0.02.
    const jobs::JobOptions calm = job_with({"learning_rate={base: 0.02 with_learners: KEEP}", "training.max_epochs=2",
                                            "training.on_divergence=STOP", kSmallModel, synchronization});
    const TemporaryDirectory beside;
    CHECK(train_part(calm, beside.path()).summary.model_sha256 == part.summary.model_sha256);
  }
}

TEST_CASE("a run that is stopped after a roll-back ends with the bytes of one that never stopped", "[divergence]") {
  const jobs::JobOptions job = diverging({"synchronization={sma {}}"});
  const TemporaryDirectory whole;
  const jobs::RunSummary expected = train_part(job, whole.path()).summary;
  REQUIRE(expected.status == RunStatus::kCompleted);

  const TemporaryDirectory parts;
  const Part first = train_part(job, parts.path(), {.stops_at_rollback = true});
  CHECK(first.summary.status == RunStatus::kStopped);
  REQUIRE(first.rollbacks.size() == 1);
  for (const int looks : {300, 900}) {
    const Part next = train_part(job, parts.path(), looks);
    CHECK(next.summary.status == RunStatus::kStopped);
    CHECK(next.rollbacks.empty());  // the lower learning rate is part of the checkpoint
  }
  const Part last = train_part(job, parts.path());
  CHECK(last.summary.status == RunStatus::kCompleted);
  CHECK(last.summary.model_sha256 == expected.model_sha256);
  CHECK(lines_of(parts.path(), "rollback").size() == 1);
}

TEST_CASE("after three roll-backs a run ends as one that does not go back, also if it was resumed meanwhile",
          "[divergence]") {
  const std::vector<std::string> settings = {"training.rollback_factor=0.5"};
  const TemporaryDirectory whole;
  const Part three = train_part(diverging(settings), whole.path());
  CHECK(three.summary.status == RunStatus::kDiverged);
  REQUIRE(three.rollbacks.size() == 3);
  CHECK(three.rollbacks[2].factor == 0.125);
  CHECK_THAT(three.summary.message,
             ContainsSubstring("training diverged") &&
                 ContainsSubstring("the run has gone back 3 times, to 0.125 times the learning rate"));

  const TemporaryDirectory parts;
  for (int part = 0; part < 3; ++part) {
    const Part one = train_part(diverging(settings), parts.path(), {.stops_at_rollback = true});
    CHECK(one.summary.status == RunStatus::kStopped);
    REQUIRE(one.rollbacks.size() == 1);
    CHECK(one.rollbacks.front().rollbacks == part + 1);
  }
  const Part last = train_part(diverging(settings), parts.path());
  CHECK(last.summary.status == RunStatus::kDiverged);
  CHECK(last.rollbacks.empty());
}

TEST_CASE("checkpoints that are damaged or hold numbers that are not finite are passed over, and renamed",
          "[divergence]") {
  const TrainedRun trained;
  const auto& [output, checkpoints, all] = trained;
  CHECK(all.front().batches == 0);
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  CHECK(jobs::find_rollback_point(checkpoints, {}, warn)->path == all[3].path);
  CHECK(warnings.empty());

  jobs::SavedRun sound = jobs::read_saved_run(jobs::open_checkpoint(all[3].path));
  sound.model = jobs::read_saved_model(jobs::open_checkpoint(all[3].path));
  CHECK(jobs::is_finite(sound));  // reads the learners
  jobs::read_learners(sound, 0, sound.training.learners.size());
  CHECK(jobs::is_finite(sound));
  const auto with = [&](const auto& change) {
    jobs::SavedRun changed = sound;
    change(changed);
    return jobs::is_finite(changed);
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK_FALSE(with([&](jobs::SavedRun& run) { run.model[1].values[0] = std::nanf(""); }));
  CHECK_FALSE(with([&](jobs::SavedRun& run) { run.training.model[0].values.back() = -kInfinity; }));
  CHECK_FALSE(with([&](jobs::SavedRun& run) { run.training.central_before[0].values[3] = kInfinity; }));
  CHECK_FALSE(with([&](jobs::SavedRun& run) { run.training.learners[1].weights[0].values[3] = kInfinity; }));
  CHECK_FALSE(with([&](jobs::SavedRun& run) { run.training.learners[1].optimizer[0][0].values[3] = std::nanf(""); }));
  CHECK_FALSE(with([&](jobs::SavedRun& run) { run.run.epoch.sums.values[engine::kLossSum] = kInfinity; }));

  jobs::SavedRun broken = sound;
  broken.training.learners[1].optimizer[0][2].values[0] = kInfinity;
  jobs::write_saved_run(checkpoints, broken);
  std::ofstream(all[2].path / "learner-0001.safetensors", std::ios::app) << "more";
  const auto point = jobs::find_rollback_point(checkpoints, {}, warn);
  REQUIRE(point);
  CHECK(point->path == all[1].path);
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[0], ContainsSubstring("holds numbers that are not finite") && ContainsSubstring(".not-finite'"));
  CHECK_THAT(warnings[1], ContainsSubstring(".damaged'"));
  CHECK(jobs::list_checkpoints(checkpoints).size() == 2);
  const fs::path nothing = output.path() / "nothing";
  CHECK_FALSE(jobs::find_rollback_point(nothing, {}, warn));
}

TEST_CASE("checkpoints within the rise of the loss, and those that led to a divergence, are passed over",
          "[divergence]") {
  const TrainedRun trained;
  const auto& [output, checkpoints, all] = trained;
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  CHECK(jobs::find_rollback_point(checkpoints, {.before = all[3].batches}, warn)->path == all[3].path);
  CHECK(jobs::find_rollback_point(checkpoints, {.before = all[3].batches - 1}, warn)->path == all[2].path);
  CHECK(jobs::find_rollback_point(checkpoints, {.last = all[2].batches}, warn)->path == all[1].path);
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[1], ContainsSubstring("leads to a divergence again") && ContainsSubstring(".diverged'"));

  jobs::SavedRun rising = jobs::read_saved_run(jobs::open_checkpoint(all[1].path));
  rising.model = jobs::read_saved_model(jobs::open_checkpoint(all[1].path));
  rising.training.losses.high_windows = 1;
  jobs::write_saved_run(checkpoints, rising);
  CHECK(jobs::find_rollback_point(checkpoints, {}, warn)->path == all[0].path);
  // The last one that is left is better than none.
  CHECK(jobs::find_rollback_point(checkpoints, {.last = all[0].batches}, warn)->path == all[0].path);
}

namespace {

// The learning rate is highest at the ends of odd epochs: the loss rises there, and stays finite.
const std::vector<std::string> kSpike = {
    "model={ layers { name: 'logits' input: 'image' dense { units: 10 } } layers { name: 'loss' input: ['logits', "
    "'label'] softmax_cross_entropy {} } layers { name: 'accuracy' input: ['logits', 'label'] accuracy {} } }",
    "learning_rate={base: 60 with_learners: KEEP cyclic { epochs: 2 start_factor: 0.0001 rising: 0.5 }}",
    "training.max_epochs=4",
    "training.spike_factor=2",
    "training.rollback_factor=0.001",
    "optimizer={sgd { momentum: 0 }}",
    "synchronization={sma {}}"};

jobs::JobOptions spiking(const std::string& checkpoint) {
  std::vector<std::string> settings = kSpike;
  settings.push_back("checkpoint={" + checkpoint + "}");
  return job_with(settings);
}

}  // namespace

TEST_CASE("a run goes back to the same point whenever else it was saved", "[divergence]") {
  const TemporaryDirectory seldom, often, in_parts;
  const Part expected = train_part(spiking("every_minutes: 1000 keep_last: 1"), seldom.path());
  REQUIRE(expected.rollbacks.size() == 1);
  CHECK(expected.rollbacks.front().to_epoch >= 1.0);
  const Part saved_often = train_part(spiking("every_minutes: 0.0003 keep_last: 1"), often.path());
  REQUIRE(saved_often.rollbacks.size() == 1);
  CHECK(saved_often.rollbacks.front().to_batch == expected.rollbacks.front().to_batch);
  CHECK(saved_often.summary.model_sha256 == expected.summary.model_sha256);
  std::size_t rollbacks = 0;
  Part part;
  do {
    part = train_part(spiking("every_minutes: 1000 keep_last: 1"), in_parts.path(), 130);
    rollbacks += part.rollbacks.size();
  } while (part.summary.status == RunStatus::kStopped);
  CHECK(rollbacks == 1);
  CHECK(part.summary.model_sha256 == expected.summary.model_sha256);
}

TEST_CASE("a run that diverges again goes back to the same point again, whenever else it was saved", "[divergence]") {
  // The weights grow in every step, so it diverges again and again within the first epoch.
  const auto growing = [](const std::string& minutes) {
    return job_with({"model={zoo {logistic_regression {}}}", "optimizer={sgd {momentum: 0 weight_decay: 1}}",
                     "learning_rate={base: 2.5 with_learners: KEEP}", "training.rollback_factor=0.9",
                     "training.max_epochs=1", "checkpoint={every_minutes: " + minutes + " keep_last: 2}"});
  };
  const TemporaryDirectory seldom, often;
  const Part expected = train_part(growing("1000"), seldom.path());
  const Part saved_often = train_part(growing("0.0003"), often.path());
  REQUIRE(expected.rollbacks.size() > 1);
  REQUIRE(saved_often.rollbacks.size() == expected.rollbacks.size());
  for (std::size_t i = 0; i < expected.rollbacks.size(); ++i) {
    CHECK(expected.rollbacks[i].to_batch == 0);
    CHECK(saved_often.rollbacks[i].to_batch == 0);
  }
  CHECK(saved_often.summary.model_sha256 == expected.summary.model_sha256);
}

TEST_CASE("a run that was saved by time only goes back to the newest of its checkpoints", "[divergence]") {
  const TrainedRun trained;
  const auto& [output, checkpoints, all] = trained;
  for (const jobs::Checkpoint& each : all) {
    jobs::SavedRun saved = jobs::read_saved_run(jobs::open_checkpoint(each.path));
    CHECK(jobs::is_rollback_point(each));
    saved.model = jobs::read_saved_model(jobs::open_checkpoint(each.path));
    saved.run.rollbacks.point = 1;
    jobs::write_saved_run(checkpoints, saved);
    CHECK_FALSE(jobs::is_rollback_point(jobs::open_checkpoint(each.path)));
  }
  const auto warn = [](const std::string& text) { FAIL_CHECK(text); };
  CHECK(jobs::find_rollback_point(checkpoints, {}, warn)->path == all[3].path);
}

TEST_CASE("checkpoints that are no points are passed over if there is a point", "[divergence]") {
  const TrainedRun trained;
  const auto& [output, checkpoints, all] = trained;
  for (const std::size_t later : {2U, 3U}) {
    jobs::SavedRun saved = jobs::read_saved_run(jobs::open_checkpoint(all[later].path));
    saved.model = jobs::read_saved_model(jobs::open_checkpoint(all[later].path));
    saved.run.rollbacks.point = all[1].batches;
    jobs::write_saved_run(checkpoints, saved);
  }
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  CHECK(jobs::find_rollback_point(checkpoints, {}, warn)->path == all[1].path);
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[0], ContainsSubstring("is later than the point that the run goes back to"));
}

TEST_CASE("a lasting spike of the loss takes the run back, too", "[divergence]") {
  const TemporaryDirectory output;
  const Part part = train_part(job_with(kSpike), output.path());
  // It ends with the large weights of the point that it went back to.
  CHECK(part.summary.status == RunStatus::kDiverged);
  CHECK_THAT(part.summary.message, ContainsSubstring("the mean training loss of the last epoch"));
  CHECK(part.summary.epochs == 4);
  REQUIRE(part.rollbacks.size() == 1);
  const jobs::RollbackRow& row = part.rollbacks.front();
  CHECK_THAT(row.reason, ContainsSubstring("the training loss rose to"));
  REQUIRE(row.loss);
  CHECK(std::isfinite(*row.loss));
  CHECK(row.to_epoch >= 1.0);
  CHECK(row.epoch > row.to_epoch);
  // The log tells the lost epochs once more after the roll-back.
  int before = 0;
  for (const auto& line : lines_of(output.path(), "epoch")) before = std::max(before, line.at("epoch").get<int>());
  CHECK(before == 4);
}

TEST_CASE("a run that could not save the checkpoint of its start says that it has none to go back to", "[divergence]") {
  const TemporaryDirectory output;
  const auto block = [&] { fs::create_symlink("nowhere", output / "checkpoints"); };
  const Part part = train_part(diverging(), output.path(), {.at_start = block});
  CHECK(part.summary.status == RunStatus::kDiverged);
  CHECK_THAT(part.summary.message, ContainsSubstring("not even the checkpoint of its start could be saved"));
  REQUIRE_FALSE(part.warnings.empty());
  CHECK_THAT(part.warnings.front(), ContainsSubstring("was not saved"));
}

TEST_CASE("a run that diverged before its first checkpoint is told from others without one", "[divergence]") {
  const TemporaryDirectory output;
  const Part part = train_part(job_with({"training.on_divergence=STOP", "learning_rate.base=1000"}), output.path());
  REQUIRE(part.summary.status == RunStatus::kDiverged);
  CHECK_THROWS_WITH(
      jobs::check_may_begin(output.path(), /*is_run=*/true),
      ContainsSubstring("diverged before its first checkpoint") && ContainsSubstring("lower learning_rate.base"));
}

TEST_CASE("a run without a directory stops where it diverges, and so does a job that does not ask to go back",
          "[divergence]") {
  const jobs::RunSummary without = run(diverging());
  CHECK(without.status == RunStatus::kDiverged);
  const TemporaryDirectory output;
  const Part stopped = train_part(job_with({"training.on_divergence=STOP", "learning_rate.base=1000"}), output.path());
  CHECK(stopped.summary.status == RunStatus::kDiverged);
  CHECK(stopped.rollbacks.empty());
  CHECK(stopped.summary.message.find("gone back") == std::string::npos);
  CHECK(jobs::list_checkpoints(jobs::checkpoints_of(output.path())).empty());
}

}  // namespace arbalest::tests
