// Runs that end before their last epoch: signals, divergence, a model that cannot be saved.
#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>

#include "engine/base/error.h"
#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"
#include "train/train.h"

namespace arbalest::tests {
namespace {

using jobs::RunStatus;
using jobs::RunSummary;

// Counts the observer's calls, and asks the run to stop at the moment `stops_at`.
class Stopper final : public jobs::RunObserver {
 public:
  enum class Moment { kPreparation, kProgress, kEpoch };

  explicit Stopper(Moment stops_at) : stops_at_(stops_at) {}

  void on_prepare() override { reach(Moment::kPreparation); }
  void on_start(const jobs::RunStart&) override { ++starts; }
  void on_progress(const jobs::RunProgress& progress) override {
    if (progresses++ == 0) first_progress = progress;
    reach(Moment::kProgress);
  }
  void on_epoch(const jobs::EpochRow&) override {
    ++epochs;
    reach(Moment::kEpoch);
  }
  void on_stop(int number) override {
    ++stops;
    CHECK(number == SIGTERM);
    CHECK(finishes == 0);
  }
  void on_finish(const RunSummary&) override { ++finishes; }

  std::atomic<int> signal{0};
  jobs::RunProgress first_progress;
  int progresses = 0;
  int starts = 0;
  int epochs = 0;
  int stops = 0;
  int finishes = 0;

 private:
  void reach(Moment moment) {
    if (moment == stops_at_) signal = SIGTERM;
  }

  Moment stops_at_;
};

RunSummary run_until(Stopper& stopper, const jobs::JobOptions& job, const std::string& output) {
  jobs::RunContext context;
  context.output_directory = output;
  context.observers = {&stopper};
  context.stop_signal = &stopper.signal;
  return jobs::train(job, context);
}

// Fails at the end of the run.
class FailingObserver final : public jobs::RunObserver {
 public:
  void on_start(const jobs::RunStart&) override {}
  void on_progress(const jobs::RunProgress&) override {}
  void on_epoch(const jobs::EpochRow&) override {}
  void on_finish(const RunSummary&) override { engine::fail(engine::ErrorKind::kOutOfMemory, "the disk is full"); }
};

// `depth` dense layers, one mini-batch per epoch. With 9 layers and a stddev of 1 the training loss is finite, but
// after one step at this learning rate the model's loss is not.
jobs::JobOptions explosive_job(int depth, const std::string& stddev) {
  std::string layers;
  std::string input = "image";
  for (int layer = 0; layer < depth; ++layer) {
    const std::string name = "d" + std::to_string(layer);
    layers += "layers { name: '" + name + "' input: '" + input +
              "' dense { units: " + (layer + 1 < depth ? "64" : "10") +
              " weight { initializer { gaussian { stddev: " + stddev + " } } } } }\n";
    input = name;
  }
  return parse("name: 'explosive' model {\n" + layers + "layers { name: 'loss' input: ['" + input +
               "', 'label'] softmax_cross_entropy {} } }\n"
               "data { digits {} } training { batch_size: 20000 max_epochs: 2 } learning_rate { base: 10 }\n"
               "learners { per_device { fixed: 1 } }");
}

}  // namespace

TEST_CASE("a stop signal ends the run after the round, saves the model and is not a failure", "[training]") {
  const TemporaryDirectory directory;
  Stopper stopper(Stopper::Moment::kProgress);
  const RunSummary summary = run_until(stopper, load("lenet-digits.txtpb", {}), directory.path().string());
  CHECK(summary.status == RunStatus::kStopped);
  CHECK(summary.message.starts_with("stopped by SIGTERM after 0."));
  CHECK(summary.epochs == 0);
  CHECK(summary.examples > 0);
  CHECK(summary.examples < 20'000);
  CHECK(summary.epochs_begun == Approx(static_cast<double>(summary.examples) / 20'000));
  CHECK(summary.test.value("accuracy").has_value());
  CHECK(stopper.starts == 1);
  CHECK(stopper.epochs == 0);
  CHECK(stopper.stops == 1);
  CHECK(stopper.finishes == 1);
  CHECK(jobs::read_safetensors(directory.path() / "model.safetensors").size() == 8);

  // The first report was measured.
  CHECK(stopper.first_progress.train_loss > 0.0);
  CHECK(stopper.first_progress.images_per_second > 0.0);
  CHECK(stopper.first_progress.epoch > 0.0);
}

TEST_CASE("a stop signal during preparation ends the run before training", "[training]") {
  Stopper stopper(Stopper::Moment::kPreparation);
  const RunSummary summary = run_until(stopper, load("logistic-digits.txtpb", {}), "");
  CHECK(summary.status == RunStatus::kStopped);
  CHECK(summary.message == "stopped by SIGTERM after 0 epochs");
  CHECK(summary.examples == 0);
  CHECK(stopper.stops == 1);
  CHECK(stopper.progresses == 0);
}

TEST_CASE("a stop signal during the last evaluation has no effect", "[training]") {
  Stopper stopper(Stopper::Moment::kEpoch);
  const RunSummary summary = run_until(stopper, load("logistic-digits.txtpb", {"training.max_epochs=1"}), "");
  CHECK(summary.status == RunStatus::kCompleted);
  CHECK(summary.message.empty());
  CHECK(summary.epochs == 1);
  CHECK(stopper.stops == 0);
}

TEST_CASE("a run whose model cannot be saved reports its results, and tells all observers that it failed",
          "[training]") {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "model.safetensors");  // no file can replace a directory
  FailingObserver failing;
  class Listener final : public jobs::RunObserver {
   public:
    void on_start(const jobs::RunStart&) override {}
    void on_progress(const jobs::RunProgress&) override {}
    void on_epoch(const jobs::EpochRow&) override {}
    void on_finish(const RunSummary& summary) override { summary_ = summary; }
    RunSummary summary_;
  } listener;
  jobs::RunContext context;
  context.output_directory = directory.path().string();
  context.observers = {&failing, &listener};
  CHECK_THROWS_WITH(jobs::train(load("logistic-digits.txtpb", {"training.max_epochs=1"}), context),
                    ContainsSubstring("model.safetensors"));
  CHECK(listener.summary_.status == RunStatus::kFailed);
  CHECK_THAT(listener.summary_.message, ContainsSubstring("model.safetensors"));
  CHECK(listener.summary_.test.value("accuracy").value_or(0.0) > 0.5);
  CHECK(listener.summary_.test.value("loss").has_value());
  CHECK(listener.summary_.model_sha256.empty());
}

TEST_CASE("a diverged run saves the last finite model and names the learner that diverged", "[training]") {
  for (const char* learners : {"1", "3"}) {
    const TemporaryDirectory directory;
    const jobs::JobOptions job = load(
        "lenet-digits.txtpb",
        {"learning_rate.base=1000", std::string("learners.per_device.fixed=") + learners, "training.max_epochs=1"});
    const RunSummary summary = run(job, directory.path().string());
    CHECK(summary.status == RunStatus::kDiverged);
    CHECK_THAT(summary.message, ContainsSubstring("learner ") && ContainsSubstring("mini-batch "));
    for (const dataflow::NamedTensor& tensor : jobs::read_safetensors(directory.path() / "model.safetensors")) {
      bool finite = true;
      for (const float value : tensor.values) finite = finite && std::isfinite(value);
      CHECK(finite);
    }
  }
}

TEST_CASE("a model with a non-finite test loss has diverged, even if its training loss is finite", "[training]") {
  const TemporaryDirectory directory;
  const jobs::JobOptions job = explosive_job(9, "1");
  const RunSummary summary = run(job, directory.path().string());
  CHECK(summary.status == RunStatus::kDiverged);
  CHECK_THAT(summary.message, ContainsSubstring("after epoch 1 the model's loss on the test set is"));
  CHECK(summary.epochs == 1);
  REQUIRE(summary.test.value("loss").has_value());
  CHECK_FALSE(std::isfinite(*summary.test.value("loss")));
  CHECK_FALSE(summary.best_test.has_value());
  const auto kind_of = [](const auto& action) {
    try {
      action();
    } catch (const engine::Error& error) {
      return error.kind();
    }
    return engine::ErrorKind::kInternal;
  };
  const std::string model = (directory.path() / "model.safetensors").string();
  CHECK(kind_of([&] { jobs::evaluate_run(job, model, summary.model_sha256, {}); }) == engine::ErrorKind::kDiverged);
  CHECK(kind_of([&] { jobs::dry_run(job, {}); }) == engine::ErrorKind::kDiverged);
}

TEST_CASE("the error for a first loss that is not finite does not blame the learning rate", "[training]") {
  const RunSummary summary = run(explosive_job(14, "1000"));
  CHECK(summary.status == RunStatus::kDiverged);
  CHECK_THAT(summary.message,
             ContainsSubstring("mini-batch 0 ") &&
                 ContainsSubstring("initial values of the model's layers, and the data's normalization"));
  CHECK(summary.message.find("learning_rate") == std::string::npos);
}

}  // namespace arbalest::tests
