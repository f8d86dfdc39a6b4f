// The policy of checkpoints, and the best model.
#include "checkpoint/checkpoint_saver.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/best_model.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_store.h"
#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {

namespace {

scheduler::Tensors model_of(float value) { return {{.name = "w", .shape = {1}, .values = {value}}}; }

float best_value(const TemporaryDirectory& run) {
  return jobs::read_safetensors(run.path() / jobs::kBestModel).at(0).values.at(0);
}

}  // namespace

TEST_CASE("the best model: a later one is compared with the one that is still being written") {
  const TemporaryDirectory run;
  jobs::CheckpointSaver saver(run.path(), {}, {.smaller_is_better = false}, 0, 0.0, {});
  REQUIRE(saver.is_best(0.8));
  saver.save_best(model_of(8.0F), {0.8, 10});
  CHECK(saver.best() == jobs::BestModel{0.8, 10});
  CHECK_FALSE(saver.is_best(0.7));
  CHECK(saver.is_best(0.9));
  saver.take_result(/*wait=*/true);
  CHECK(saver.best() == jobs::BestModel{0.8, 10});
  CHECK_FALSE(saver.is_best(0.7));
  CHECK(best_value(run) == 8.0F);
}

TEST_CASE("the best model: if it cannot be written, its checkpoint is, and a warning says so") {
  const TemporaryDirectory run;
  jobs::CheckpointSaver saver(run.path(), {}, {}, 0, 0.0, std::nullopt);
  std::filesystem::create_directory(run.path() / jobs::kBestModel);  // no file can get this name
  jobs::SavedRun saved;
  saved.training.batches = 10;
  saved.training.model = model_of(8.0F);
  saved.training.learners.push_back({.weights = model_of(8.0F)});
  saved.model = model_of(8.0F);
  saved.run.best_model = jobs::BestModel{0.8, 10};
  saver.save(std::move(saved), 1.0, /*is_best=*/true);
  const std::optional<jobs::SaveResult> result = saver.take_result(/*wait=*/true);
  REQUIRE(result);
  CHECK(result->failure.empty());
  CHECK(std::filesystem::exists(result->path / jobs::kManifestFile));
  REQUIRE(result->warnings.size() == 1);
  CHECK(result->warnings.front().find("mini-batch 10") != std::string::npos);
  CHECK_FALSE(saver.best());
}

TEST_CASE("the best model: one that could not be written is not the one to beat") {
  const TemporaryDirectory run;
  jobs::CheckpointSaver saver(run.path(), {}, {.smaller_is_better = true}, 0, 0.0, {});
  saver.save_best(model_of(8.0F), {0.8, 10});
  saver.take_result(/*wait=*/true);
  std::filesystem::remove(run.path() / jobs::kBestModel);
  std::filesystem::create_directory(run.path() / jobs::kBestModel);  // no file can get this name
  saver.save_best(model_of(7.0F), {0.7, 20});
  const auto result = saver.take_result(/*wait=*/true);
  REQUIRE(result);
  REQUIRE(result->warnings.size() == 1);
  CHECK(result->warnings.front().find("mini-batch 20, is not in best.safetensors") != std::string::npos);
  CHECK(saver.best() == jobs::BestModel{0.8, 10});
  CHECK(saver.is_best(0.75));
}

TEST_CASE("the best model: that of the last checkpoint is kept until a checkpoint names the next one") {
  const TemporaryDirectory run;
  const auto run_at = [](std::uint64_t batches, const jobs::BestModel& best) {
    jobs::SavedRun saved;
    saved.training.batches = batches;
    saved.training.model = saved.model = model_of(0.0F);
    saved.training.learners.push_back({.weights = model_of(0.0F)});
    saved.run.best_model = best;
    return saved;
  };
  const std::filesystem::path earlier = run.path() / jobs::kEarlierBest;
  const std::vector<jobs::BestModel> best = {{0.7, 10}, {0.8, 30}, {0.9, 40}};
  {
    jobs::CheckpointSaver saver(run.path(), {}, {}, 0, 0.0, {});
    saver.save_best(model_of(7.0F), best[0]);
    saver.save(run_at(20, best[0]), 1.0, /*is_best=*/false);
    saver.take_result(/*wait=*/true);
    CHECK_FALSE(std::filesystem::exists(earlier));
    saver.save_best(model_of(8.0F), best[1]);
    saver.save_best(model_of(9.0F), best[2]);
    saver.take_result(/*wait=*/true);
    CHECK(best_value(run) == 9.0F);
    CHECK(std::filesystem::exists(earlier));
  }
  // The run is killed here, and goes on from its checkpoint.
  const auto ignore = [](const std::string&) {};
  const std::filesystem::path checkpoint = jobs::newest_checkpoint(run.path() / "checkpoints", ignore)->path;
  const jobs::BestModelNeeds needs{
      .run_directory = run.path(), .checkpoint = checkpoint, .batches = 20, .best = best[0]};
  std::vector<std::string> told;
  const auto tell = [&](const std::string& text) { told.push_back(text); };
  CHECK(jobs::take_over_best_model(needs, tell) == best[0]);
  CHECK(best_value(run) == 7.0F);
  REQUIRE(told.size() == 1);
  CHECK_THAT(told.front(), ContainsSubstring("is now 'best.safetensors.superseded'"));
  CHECK_FALSE(std::filesystem::exists(earlier));
  // The next checkpoint names the next one.
  jobs::CheckpointSaver saver(run.path(), {}, {}, 20, 1.0, best[0]);
  saver.save_best(model_of(8.0F), best[1]);
  saver.take_result(/*wait=*/true);
  CHECK(std::filesystem::exists(earlier));
  saver.save(run_at(40, best[1]), 2.0, /*is_best=*/false);
  saver.take_result(/*wait=*/true);
  CHECK_FALSE(std::filesystem::exists(earlier));
  CHECK(best_value(run) == 8.0F);
}

TEST_CASE("checkpoints: one for which there was no memory is due again an interval later") {
  const TemporaryDirectory run;
  jobs::CheckpointOptions options;
  options.every_batches = 100;
  jobs::CheckpointSaver saver(run.path(), options, {.smaller_is_better = false}, 0, 0.0, {});
  CHECK(saver.is_due(120, 0.0, {}));
  saver.skip(120, 0.0);
  CHECK_FALSE(saver.is_due(121, 0.0, {}));
  CHECK(saver.is_due(200, 0.0, {}));
}

}  // namespace arbalest::tests
