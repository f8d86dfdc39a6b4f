// Tests which model best.safetensors holds when a run goes on.
#include "checkpoint/best_model.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/learner_files.h"
#include "checkpoint/saved_run.h"
#include "report/reopen/chosen_model.h"
#include "saved_model/safetensors.h"
#include "tests/jobs/job_text.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {

namespace {

namespace fs = std::filesystem;
using jobs::BestModel;

scheduler::Tensors model_of(float value) { return {{.name = "w", .shape = {1}, .values = {value}}}; }

// A checkpoint whose model was evaluated, with its number of mini-batches as the model's weight.
fs::path write_checkpoint(const fs::path& run, std::uint64_t batches, double score) {
  const auto value = static_cast<float>(batches);
  jobs::SavedRun saved;
  saved.training.batches = batches;
  saved.training.model = model_of(value);
  saved.training.learners.push_back({.weights = model_of(value)});
  saved.model = model_of(value);
  saved.run.present_score = score;
  return jobs::write_saved_run(jobs::checkpoints_of(run), saved);
}

float best_value(const fs::path& run) { return jobs::read_safetensors(run / jobs::kBestModel).at(0).values.at(0); }

struct Take {
  std::optional<BestModel> operator()(const jobs::BestModelNeeds& needs) {
    warnings.clear();
    return jobs::take_over_best_model(needs, [this](const std::string& text) { warnings.push_back(text); });
  }
  std::vector<std::string> warnings;
};

}  // namespace

TEST_CASE("best.safetensors tells its score to the last digit, and a file of another program tells none") {
  const TemporaryDirectory run;
  CHECK_FALSE(jobs::best_model_in(run.path()));
  const BestModel best{0.1 + 0.2, 123456789012345};
  jobs::write_best_model(run.path(), model_of(1.0F), best);
  CHECK(jobs::best_model_in(run.path()) == best);
  jobs::write_safetensors(run / jobs::kBestModel, model_of(1.0F), {{"score", "0.5 or so"}, {"mini_batches", "3"}});
  CHECK_FALSE(jobs::best_model_in(run.path()));
  write_text(run / jobs::kBestModel, "no safetensors");
  CHECK_FALSE(jobs::best_model_in(run.path()));
}

TEST_CASE(
    "the best model of a point is taken from the file, a checkpoint, or the best of the checkpoints until there") {
  const TemporaryDirectory run;
  write_checkpoint(run.path(), 100, 0.5);
  write_checkpoint(run.path(), 200, 0.75);
  const fs::path third = write_checkpoint(run.path(), 300, 0.625);
  write_checkpoint(run.path(), 400, 0.875);
  jobs::write_best_model(run.path(), model_of(400.0F), {0.875, 400});
  Take take;
  CHECK(take({.run_directory = run.path(), .batches = 450, .best = BestModel{0.875, 400}}) == BestModel{0.875, 400});
  CHECK(take.warnings.empty());

  CHECK(take({.run_directory = run.path(), .checkpoint = third, .batches = 300, .best = BestModel{0.75, 200}}) ==
        BestModel{0.75, 200});
  CHECK(best_value(run.path()) == 200.0F);
  REQUIRE(take.warnings.size() == 1);
  CHECK_THAT(take.warnings[0], ContainsSubstring("it was not the best model at the point"));

  // No file has the model of mini-batch 150.
  CHECK(take({.run_directory = run.path(), .checkpoint = third, .batches = 300, .best = BestModel{0.8, 150}}) ==
        BestModel{0.75, 200});
  REQUIRE(take.warnings.size() == 2);
  CHECK_THAT(take.warnings[1],
             ContainsSubstring("mini-batch 150 (score 0.8)") &&
                 ContainsSubstring("is now the best model among the checkpoints, that of mini-batch 200 (score 0.75)"));
  jobs::BestModelNeeds smaller{.run_directory = run.path(), .batches = 300, .best = BestModel{0.1, 150}};
  smaller.order = {.smaller_is_better = true};
  CHECK(take(smaller) == BestModel{0.5, 100});
}

TEST_CASE("the best model is taken along to another directory, from the run's file or from a checkpoint") {
  const TemporaryDirectory run;
  const fs::path first = write_checkpoint(run.path(), 100, 0.5);
  const fs::path second = write_checkpoint(run.path(), 200, 0.25);
  jobs::write_best_model(run.path(), model_of(50.0F), {0.875, 50});
  Take take;
  const TemporaryDirectory other;
  CHECK(take({.run_directory = other.path(), .checkpoint = second, .batches = 200, .best = BestModel{0.875, 50}}) ==
        BestModel{0.875, 50});
  CHECK(best_value(other.path()) == 50.0F);
  CHECK(best_value(run.path()) == 50.0F);
  const TemporaryDirectory third;
  CHECK(take({.run_directory = third.path(), .checkpoint = second, .batches = 200, .best = BestModel{0.5, 100}}) ==
        BestModel{0.5, 100});
  CHECK(take.warnings.empty());

  // A job that keeps no best model any more has none: the next epochs would not replace it.
  CHECK_FALSE(take({.run_directory = third.path(), .batches = 200, .best = BestModel{0.5, 100}, .keeps = false}));
  CHECK(fs::exists(third / "best.safetensors.superseded"));
  jobs::write_best_model(third.path(), model_of(1.0F), {0.5, 100});
  CHECK_FALSE(take({.run_directory = third.path(), .batches = 200, .best = BestModel{0.25, 200}, .keeps = false}));
  CHECK_FALSE(fs::exists(third / jobs::kBestModel));
  CHECK(fs::exists(third / "best.safetensors.superseded-2"));
}

TEST_CASE("a learner's file keeps weights and the optimizer's vectors apart, whatever the layers' names") {
  const TemporaryDirectory run;
  jobs::SavedRun saved;
  saved.training.batches = 10;
  saved.training.model = model_of(1.0F);
  saved.training.optimizer_slots = {"momentum"};
  scheduler::LearnerState learner;
  float value = 0.0F;
  for (const char* name : {"momentum/w", "weights/w", "w", "weights/momentum/w"}) {
    learner.weights.push_back({.name = name, .shape = {1}, .values = {++value}});
  }
  learner.optimizer = {learner.weights};
  for (auto& tensor : learner.optimizer[0]) tensor.values = {-tensor.values[0]};
  saved.training.learners = {learner};
  saved.model = model_of(1.0F);
  const fs::path path = jobs::write_saved_run(jobs::checkpoints_of(run.path()), saved);
  const jobs::Checkpoint checkpoint = jobs::open_checkpoint(path);
  jobs::SavedRun read = jobs::read_saved_run(checkpoint);
  jobs::read_learner(checkpoint, 0, read.training);
  const auto names_and_values = [](const scheduler::Tensors& tensors) {
    std::vector<std::pair<std::string, float>> found;
    for (const auto& tensor : tensors) found.emplace_back(tensor.name, tensor.values.at(0));
    return found;
  };
  CHECK(names_and_values(read.training.learners.at(0).weights) == names_and_values(learner.weights));
  CHECK(names_and_values(read.training.learners.at(0).optimizer.at(0)) == names_and_values(learner.optimizer[0]));
}

TEST_CASE("a damaged checkpoint gives no best model") {
  const TemporaryDirectory run;
  const fs::path first = write_checkpoint(run.path(), 100, 0.5);
  write_text(first / "model.safetensors", "damaged");
  Take take;
  CHECK_FALSE(take({.run_directory = run.path(), .batches = 150, .best = BestModel{0.5, 100}}));
  REQUIRE(take.warnings.size() == 2);
  CHECK_THAT(take.warnings[0], ContainsSubstring("cannot be kept") && ContainsSubstring("model.safetensors"));
  CHECK_THAT(take.warnings[1], ContainsSubstring("no checkpoint holds the run's best model"));
}

TEST_CASE("a best model that its run replaces while it is read is read again, and no other failure is hidden") {
  const TemporaryDirectory run;
  write_text(run.path() / jobs::kJobFile, std::string(jobs::kGoodJob));
  const BestModel first{.score = 0.5, .batches = 10};
  const BestModel better{.score = 0.75, .batches = 20};
  jobs::write_best_model(run.path(), model_of(1.0F), first);
  std::vector<std::uint64_t> read;
  const auto read_best = [&]() {
    return jobs::read_chosen(
        run.path(), "best", [](const std::string&) {},
        [&](const jobs::ChosenModel& model) {
          read.push_back(model.best->batches);
          if (*model.best == better) return best_value(run.path());
          jobs::write_best_model(run.path(), model_of(2.0F), better);
          engine::fail(engine::ErrorKind::kCheckpoint, "another hash");
        });
  };
  CHECK(read_best() == 2.0F);
  CHECK(read == std::vector<std::uint64_t>{10, 20});
  int calls = 0;
  const auto fail_always = [&](const jobs::ChosenModel&) -> int {
    ++calls;
    engine::fail(engine::ErrorKind::kCheckpoint, "is damaged");
  };
  CHECK_THROWS_WITH(jobs::read_chosen(
                        run.path(), "best", [](const std::string&) {}, fail_always),
                    "is damaged");
  CHECK(calls == 1);
}

}  // namespace arbalest::tests
