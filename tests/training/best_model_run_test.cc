// best.safetensors of runs that go on from a checkpoint: always the best model of the run's own history.
#include "checkpoint/best_model.h"

#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_store.h"
#include "checkpoint/saved_run.h"
#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"

namespace arbalest::tests {

namespace {

namespace fs = std::filesystem;

jobs::JobOptions job_with(const std::string& checkpoint) {
  return short_job("logistic-digits.txtpb", {"checkpoint={" + checkpoint + "}"});
}

std::vector<std::vector<float>> values_in(const std::vector<dataflow::NamedTensor>& tensors) {
  std::vector<std::vector<float>> values;
  for (const dataflow::NamedTensor& tensor : tensors) values.push_back(tensor.values);
  return values;
}

std::vector<std::vector<float>> best_values(const fs::path& run) {
  return values_in(jobs::read_safetensors(run / jobs::kBestModel));
}

bool tells(const Part& part, const std::string& text) {
  return std::ranges::any_of(part.warnings,
                             [&](const std::string& warning) { return warning.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("a run that goes back to an earlier checkpoint has the best model of that point", "[checkpoint]") {
  const jobs::JobOptions job = job_with("every_epochs: 1 keep_last: 5");
  const TemporaryDirectory output;
  const Part whole = train_part(job, output.path());
  REQUIRE(whole.rows[2].test.value("accuracy") > whole.rows[0].test.value("accuracy"));
  const std::string last = read_text(output / jobs::kBestModel);
  const jobs::Checkpoint first = jobs::list_checkpoints(jobs::checkpoints_of(output.path())).front();

  // Stopped in its first round, so it has no epoch but the first.
  const Part back = train_part(job, output.path(), {.looks = 1, .from = first.path});
  REQUIRE(back.summary.epochs == 1);
  CHECK(jobs::best_model_in(output.path()) ==
        jobs::BestModel{whole.rows[0].test.value("accuracy").value(), first.batches});
  CHECK(best_values(output.path()) == values_in(jobs::read_saved_model(first)));
  CHECK(tells(back, "is now 'best.safetensors.superseded': it was not the best model at the point"));
  CHECK(read_text(output / "best.safetensors.superseded") == last);

  const Part again = train_part(job, output.path());
  CHECK(again.summary.model_sha256 == whole.summary.model_sha256);
  CHECK(read_text(output / jobs::kBestModel) == last);
  CHECK_FALSE(tells(again, "best.safetensors"));
}

TEST_CASE("a run that goes on in another directory takes its best model along", "[checkpoint]") {
  // The best model of the first epoch is in no checkpoint, only in the first run's best.safetensors.
  const jobs::JobOptions job = job_with("every_batches: 400 keep_last: 100");
  const TemporaryDirectory first;
  train_part(job, first.path(), {.stops_at = [](const jobs::EpochRow& row) { return row.epoch == 1; }});
  const std::string best = read_text(first / jobs::kBestModel);
  const TemporaryDirectory second;
  const Part part = train_part(
      job, second.path(), {.looks = 1, .from = jobs::list_checkpoints(jobs::checkpoints_of(first.path())).back().path});
  CHECK(part.summary.epochs == 1);
  CHECK(read_text(second / jobs::kBestModel) == best);
  CHECK(read_text(first / jobs::kBestModel) == best);
}

TEST_CASE("a best model that no file holds any more is told, and the selection goes on with what there is",
          "[checkpoint]") {
  const jobs::JobOptions job = job_with("every_minutes: 1000 keep_last: 100");
  const TemporaryDirectory output;
  const Part whole = train_part(job, output.path(), {.saves_after = 1.0});
  REQUIRE(whole.rows[2].test.value("accuracy") > whole.rows[0].test.value("accuracy"));
  const std::string last = read_text(output / jobs::kBestModel);
  const auto all = jobs::list_checkpoints(jobs::checkpoints_of(output.path()));
  const auto within_second = std::ranges::find_if(all, [](const jobs::Checkpoint& at) { return at.batches > 630; });
  REQUIRE(within_second->batches < 1250);
  const jobs::SavedRun saved = jobs::read_saved_run(jobs::open_checkpoint(within_second->path));
  REQUIRE(saved.run.best_model);
  CHECK(saved.run.best_model->score == whole.rows[0].test.value("accuracy"));

  const Part back = train_part(job, output.path(), {.looks = 1, .from = within_second->path});
  CHECK(tells(back, "best.safetensors will be written at the end of the next epoch"));
  CHECK_FALSE(fs::exists(output / jobs::kBestModel));
  train_part(job, output.path());
  CHECK(read_text(output / jobs::kBestModel) == last);
}

TEST_CASE("the best accuracy of a run is that of best.safetensors, so it counts ends of epochs only", "[checkpoint]") {
  const jobs::JobOptions job = job_with("every_epochs: 1 keep_last: 5");
  const TemporaryDirectory output;
  const Part first = train_part(job, output.path(), 100);
  CHECK(first.summary.epochs == 0);
  CHECK(first.summary.test.value("accuracy"));
  CHECK_FALSE(first.summary.best_test);
  bool was_above = false;
  double best = 0.0;
  for (int part = 0; part < 12; ++part) {
    const Part next = train_part(job, output.path(), 150);
    for (const jobs::EpochRow& row : next.rows) best = std::max(best, row.test.value("accuracy").value());
    if (next.summary.epochs == 0) continue;
    CHECK(next.summary.best_test == best);
    CHECK(jobs::best_model_in(output.path()).value().score == best);
    was_above = was_above || next.summary.test.value("accuracy").value() > best;
  }
  CHECK(was_above);
}

}  // namespace arbalest::tests
