// Whole runs with a validation set: which sets the stop rule, summary, evaluation and studies use.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "engine/base/error.h"
#include "report/json.h"
#include "study/accuracy_study.h"
#include "tests/support/catch.h"
#include "tests/support/npy_writer.h"
#include "tests/support/ratings_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"
#include "train/session/session.h"
#include "train/train.h"

namespace arbalest::tests {

namespace {

using jobs::EvaluationSet;
using jobs::RunStatus;
using jobs::RunSummary;

// Records what a run reports.
class Listener final : public jobs::RunObserver {
 public:
  void on_start(const jobs::RunStart& start) override { start_ = start; }
  void on_progress(const jobs::RunProgress& /*progress*/) override {}
  void on_epoch(const jobs::EpochRow& row) override { rows_.push_back(row); }
  void on_finish(const RunSummary& summary) override { summary_ = summary; }

  jobs::RunStart start_;
  std::vector<jobs::EpochRow> rows_;
  RunSummary summary_;
};

Listener listen(const jobs::JobOptions& job, const std::string& output = "") {
  Listener listener;
  jobs::RunContext context;
  context.observers = {&listener};
  context.output_directory = output;
  jobs::train(job, context);
  return listener;
}

// Two classes that are easy to distinguish. The test set's labels are swapped, so test accuracy falls as training
// accuracy rises.
void write_contrary(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  for (const bool is_test : {false, true}) {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;
    for (int i = 0; i < 400; ++i) {
      const int kind = i % 2;
      for (int p = 0; p < 9; ++p) pixels.push_back(static_cast<std::uint8_t>((kind == 1 ? 200 : 20) + (i + p) % 30));
      labels.push_back(is_test ? 1 - kind : kind);
    }
    const std::string split = is_test ? "test" : "train";
    write_text(directory / (split + "_images.npy"), npy("|u1", "400, 1, 3, 3", bytes_of(pixels)));
    write_text(directory / (split + "_labels.npy"), npy("<i4", "400,", bytes_of(labels)));
  }
}

jobs::JobOptions contrary_job(const TemporaryDirectory& directory, const std::vector<std::string>& settings) {
  const std::string text = fmt::format(
      "name: 'contrary' model {{ zoo {{ logistic_regression {{}} }} }}\n"
      "data {{ npy {{ directory: '{}' classes: 2 height: 3 width: 3 channels: 1 }} }}\n"
      "training {{ batch_size: 10 max_epochs: 6 target_accuracy: 0.95 }} learning_rate {{ base: 0.1 fixed {{}} }}\n"
      "devices: 'cpu' learners {{ per_device {{ fixed: 2 }} }}",
      directory.path().string());
  return jobs::parse_job(jobs::SourceText("contrary", text), settings);
}

const std::string kDivision = "data.validation.fraction=0.1";

}  // namespace

TEST_CASE("the accuracy of training is reported by epoch, beside that of the test set") {
  const TemporaryDirectory directory;
  write_contrary(directory.path());
  const Listener trained = listen(contrary_job(directory, {"training.target_accuracy=default"}));
  REQUIRE(trained.rows_.size() == 6);
  CHECK(trained.rows_.back().train.value("accuracy").value() > 0.95);
  CHECK(trained.rows_.back().test.value("accuracy").value() < 0.05);
  // The test set's images are those of the training set, with the other label. With tiny steps the predictions no
  // longer change after the first epoch.
  const Listener still =
      listen(contrary_job(directory, {"training.target_accuracy=default", "learning_rate.base=1e-30"}));
  REQUIRE(still.rows_.size() == 6);
  CHECK(still.rows_.front().train.value("accuracy").value() < 1.0);
  for (std::size_t i = 1; i < still.rows_.size(); ++i) {
    CHECK(still.rows_[i].train.value("accuracy").value() ==
          Approx(1.0 - still.rows_[i].test.value("accuracy").value()).margin(1e-12));
  }
}

TEST_CASE("the stop rule and the time to accuracy use the validation set if there is one", "[training]") {
  const TemporaryDirectory directory;
  write_contrary(directory.path());
  const Listener blind = listen(contrary_job(directory, {}));
  CHECK(blind.summary_.status == RunStatus::kCompleted);
  CHECK(blind.summary_.test.value("accuracy").value() < 0.1);
  CHECK(blind.summary_.accuracy_set == EvaluationSet::kTest);
  CHECK_FALSE(blind.summary_.validation.value("accuracy").has_value());
  CHECK_FALSE(blind.rows_.front().validation.value("loss").has_value());

  const Listener seeing = listen(contrary_job(directory, {kDivision}));
  const RunSummary& summary = seeing.summary_;
  CHECK(seeing.start_.accuracy_set == EvaluationSet::kValidation);
  CHECK_THAT(seeing.start_.data, ContainsSubstring("360 training, 40 validation and 400 test examples"));
  CHECK(summary.status == RunStatus::kTargetReached);
  CHECK(summary.accuracy_set == EvaluationSet::kValidation);
  CHECK(summary.time_to_accuracy_seconds == seeing.rows_.back().elapsed_seconds);
  CHECK(summary.validation.value("accuracy").value() >= 0.95);
  CHECK(summary.test.value("accuracy").value() < 0.1);
  CHECK(summary.best_validation.value() >= *summary.validation.value("accuracy"));
  CHECK_FALSE(summary.best_test.has_value());
  CHECK(summary.examples == summary.epochs * 360);
  const jobs::EpochRow& last = seeing.rows_.back();
  CHECK(last.validation.value("accuracy") == summary.validation.value("accuracy"));
  CHECK(last.validation.value("loss") == summary.validation.value("loss"));
  CHECK_FALSE(last.test.value("accuracy").has_value());
  CHECK_FALSE(last.test.value("loss").has_value());
  CHECK(last.decisive().value("accuracy") == last.validation.value("accuracy"));
  CHECK(last.decisive().value("loss") == last.validation.value("loss"));
}

TEST_CASE("a time-to-accuracy study uses the validation set", "[training]") {
  const TemporaryDirectory directory;
  write_contrary(directory.path());
  const auto study = [&](const std::vector<std::string>& settings) {
    jobs::JobOptions job = contrary_job(directory, settings);
    job.tuned = jobs::LearnerBounds{1, 1};
    std::vector<std::string> lines;
    return jobs::study_accuracy(job, {}, {.target = 0.95}, [&](const std::string& line) { lines.push_back(line); });
  };
  CHECK_FALSE(study({}).chosen.has_value());
  const jobs::AccuracyStudy seeing = study({kDivision});
  CHECK(seeing.chosen == 1);
  CHECK(seeing.accuracy_set == EvaluationSet::kValidation);
  CHECK_THAT(seeing.reason, ContainsSubstring("reached 95.00 % validation accuracy after"));
  CHECK(seeing.points.at(0).runs.at(0).validation_accuracy.value() >= 0.95);
  CHECK(seeing.points.at(0).runs.at(0).accuracy.value() < 0.1);
  CHECK_FALSE(seeing.points.at(0).runs.at(0).best_accuracy.has_value());
}

TEST_CASE("evaluating a saved model gives the run's reported result on either set", "[training]") {
  // Evaluates each set separately. The run evaluated one after the other.
  const std::string average = GENERATE("0", "0.5");
  const TemporaryDirectory directory;
  const jobs::JobOptions job = load(
      "convnet-digits.txtpb",
      {kDivision, "training.max_epochs=1", "learners.per_device.fixed=2", "training.moving_average_epochs=" + average});
  const RunSummary summary = run(job, directory.path().string());
  const std::string model = (directory / "model.safetensors").string();
  const jobs::EvaluationResult test = jobs::evaluate_run(job, model, summary.model_sha256, {});
  CHECK(test.set == EvaluationSet::kTest);
  CHECK(test.scores.value("accuracy") == summary.test.value("accuracy"));
  CHECK(test.scores.value("loss") == summary.test.value("loss"));
  CHECK(test.examples == 5000);
  const jobs::EvaluationResult validation =
      jobs::evaluate_run(job, model, summary.model_sha256, {}, {.set = EvaluationSet::kValidation});
  CHECK(validation.scores.value("accuracy") == summary.validation.value("accuracy"));
  CHECK(validation.scores.value("loss") == summary.validation.value("loss"));
  CHECK(validation.examples == 2000);
  CHECK(jobs::to_json(validation)["validation_accuracy"] == *summary.validation.value("accuracy"));
  try {
    jobs::evaluate_run(load("convnet-digits.txtpb", {}), model, "", {}, {.set = EvaluationSet::kValidation});
    FAIL("evaluated on a set that is not there");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kUsage);
    CHECK_THAT(error.what(), ContainsSubstring("has no validation set"));
  }
}

TEST_CASE("with a validation set, rings and steps that gather images train the same model", "[training]") {
  const jobs::JobOptions job =
      load("lenet-digits.txtpb",
           {"data.validation.fraction=0.2", "learners.per_device.fixed=2", "data.augmentation={padding: 2 cutout: 5}"});
  using jobs::Session;
  std::vector<double> losses[2];
  std::vector<std::vector<dataflow::NamedTensor>> models;
  int turn = 0;
  for (const auto input : {Session::Input::kResident, Session::Input::kRing}) {
    Session session(job, "", {}, input);
    const auto batch = session.validation_ring()->next();
    CHECK(batch->tensors.empty() == (input == Session::Input::kResident));
    session.validation_ring()->release(batch->number);
    session.validation_ring()->restart();
    session.scheduler().advance(session.training_ring(), 20);
    session.scheduler().drain();
    losses[turn] = {session.scheduler().evaluate(*session.validation_ring()).loss(),
                    session.scheduler().evaluate(session.test_ring()).loss()};
    models.push_back(session.scheduler().snapshot());
    CHECK(session.warnings().empty());
    ++turn;
  }
  CHECK(losses[0] == losses[1]);
  CHECK(losses[0][0] != losses[0][1]);
  for (std::size_t i = 0; i < models[0].size(); ++i) CHECK(models[0][i].values == models[1][i].values);
}

TEST_CASE("ratings are validated by their root mean squared error", "[training]") {
  const TemporaryDirectory directory;
  write_ratings(directory / "ratings");
  const jobs::JobOptions job =
      load("matrix-factorization-ratings.txtpb", {"data.ratings.directory=" + (directory / "ratings").string(),
                                                  kDivision, "learners.per_device.fixed=2", "training.max_epochs=3"});
  const Listener listener = listen(job, directory.path().string());
  const RunSummary& summary = listener.summary_;
  CHECK(summary.status == RunStatus::kCompleted);
  CHECK_FALSE(summary.validation.value("accuracy").has_value());
  REQUIRE(summary.validation.value("rmse").has_value());
  CHECK(*summary.validation.value("rmse") == std::sqrt(*summary.validation.value("loss")));
  CHECK(*summary.best_validation <= *summary.validation.value("rmse"));
  CHECK(listener.rows_.back().validation.value("rmse") == summary.validation.value("rmse"));
  CHECK_FALSE(listener.rows_.back().test.value("rmse").has_value());
  CHECK(summary.test.value("rmse").has_value());
  CHECK_FALSE(summary.best_test.has_value());
  CHECK_FALSE(listener.rows_.back().validation.value("accuracy").has_value());
  const std::string model = (directory / "model.safetensors").string();
  const auto again = jobs::evaluate_run(job, model, summary.model_sha256, {}, {.set = EvaluationSet::kValidation});
  CHECK(again.scores.value("rmse") == summary.validation.value("rmse"));
  CHECK(again.examples == kTrainingRatings / 10);
}

TEST_CASE("a dry run also evaluates the validation set", "[training]") {
  const std::string line = jobs::dry_run(load("lenet-digits.txtpb", {kDivision}), {}).text;
  CHECK_THAT(line, ContainsSubstring("5,000 test examples evaluated") &&
                       ContainsSubstring(", 2,000 validation examples evaluated (loss "));
}

}  // namespace arbalest::tests
