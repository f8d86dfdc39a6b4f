// Runs that have learned nothing although every number stayed finite.
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/support/small_datasets.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"
#include "train/live/learned_nothing.h"
#include "train/session/session.h"

namespace arbalest::tests {

namespace {

using jobs::RunStatus;

jobs::JobOptions job_with(const std::vector<std::string>& settings, const std::string& config = "logistic-digits") {
  std::vector<std::string> all = {"devices=cpu", "learners.per_device.fixed=2", "training.max_epochs=2"};
  all.insert(all.end(), settings.begin(), settings.end());
  return load(config + ".txtpb", all);
}

// The gradient of a single layer is bounded by its input, so at this learning rate the loss is large and finite.
const std::vector<std::string> kTooFast = {"learning_rate.base=100"};

}  // namespace

TEST_CASE("a run whose last epoch has a higher loss than the untrained model has diverged", "[training]") {
  const TemporaryDirectory output;
  const Part part = train_part(job_with(kTooFast), output.path());
  REQUIRE(part.rows.size() == 2);
  REQUIRE(std::isfinite(part.rows[1].train.loss()));
  // An untrained classifier of ten classes has a loss of ln(10) or more.
  REQUIRE(part.rows[1].train.loss() > 10.0 * std::log(10.0));
  CHECK(part.summary.status == RunStatus::kDiverged);
  CHECK(part.summary.epochs == 2);
  CHECK_THAT(part.summary.message,
             ContainsSubstring("training diverged: the mean training loss of the last epoch is ") &&
                 ContainsSubstring("1.1 times that of the untrained model, 2.") &&
                 ContainsSubstring("; lower learning_rate.base"));
  CHECK(std::filesystem::exists(output.path() / "model.safetensors"));
}

TEST_CASE("a resumed run knows the loss of the untrained model", "[checkpoint]") {
  const TemporaryDirectory output;
  const Part first = train_part(job_with(kTooFast), output.path(), 100);
  REQUIRE(first.summary.status == RunStatus::kStopped);
  const Part last = train_part(job_with(kTooFast), output.path());
  REQUIRE(last.resumed);
  CHECK(last.summary.status == RunStatus::kDiverged);
}

TEST_CASE("a model of few examples that stays as it was has not diverged", "[training]") {
  // Mini-batches of four differ much in their loss, so one of them does not tell that of the model.
  const TemporaryDirectory data;
  write_folders(data.path());
  const std::string images = fmt::format(
      "data={{images {{ directory: '{}' classes: 3 decoding {{ height: 16 width: 16 resize: 16 }} }} normalization {{ "
      "stddev: 0.02 }} }}",
      data.path().string());
  for (const int seed : {1, 2, 3, 4, 5, 6}) {
    CAPTURE(seed);
    const jobs::RunSummary summary = run(job_with({images, "learning_rate.base=1e-12", "training.batch_size=4",
                                                   "model={zoo { lenet {} }}", fmt::format("training.seed={}", seed)}));
    CHECK(summary.status == RunStatus::kCompleted);
  }
}

TEST_CASE("a run that has not ended an epoch has not diverged by its loss", "[training]") {
  std::vector<std::string> settings = kTooFast;
  settings.emplace_back("training.max_minutes=1e-9");
  const jobs::RunSummary summary = run(job_with(settings));
  CHECK(summary.status == RunStatus::kCompleted);
  CHECK(summary.epochs == 0);
}

TEST_CASE("fine-tuning may end above the loss that it began with", "[training]") {
  const TemporaryDirectory directory;
  const std::filesystem::path first = directory.path() / "first";
  std::filesystem::create_directory(first);
  const Part trained = train_part(job_with({}), first);
  REQUIRE(trained.summary.status == RunStatus::kCompleted);
  // Pictures that are moved about are harder.
  const TemporaryDirectory second;
  const Part tuned = train_part(job_with({"initialize.from=\"" + first.string() + "\"", "training.max_epochs=1",
                                          "data.augmentation={padding: 4}"}),
                                second.path());
  REQUIRE(tuned.rows.size() == 1);
  CHECK(tuned.rows[0].train.loss() > 1.5 * trained.rows[1].train.loss());
  CHECK(tuned.summary.status == RunStatus::kCompleted);
}

TEST_CASE("the loss of the untrained model is that of the first mini-batches, and changes nothing", "[training]") {
  for (const char* scheme : {"sma", "s_sgd", "local_sgd"}) {
    CAPTURE(scheme);
    const auto trained = [&](bool measures, std::optional<double>& loss, double& first) {
      jobs::JobOptions job = job_with(
          {std::string("synchronization=") + scheme, "learners.per_device.fixed=3", "data.augmentation={padding: 2}",
           "model={layers { name: 'hidden' input: 'image' dense { units: 20 } } layers { name: 'active' input: "
           "'hidden' "
           "relu {} } layers { name: 'logits' input: 'active' dense { units: 10 } } layers { name: 'loss' input: "
           "['logits', 'label'] softmax_cross_entropy { label_smoothing: 0.6 } }}"},
          "convnet-digits");
      const auto session = jobs::open_session(job, "", {});
      scheduler::Scheduler& scheduler = session->scheduler();
      if (measures) loss = scheduler.training_loss(session->training_ring(), 1);
      scheduler::Progress progress = scheduler.advance(session->training_ring(), 1);
      progress.add(scheduler.drain());
      first = progress.sums.loss() / static_cast<double>(progress.examples);
      scheduler.advance(session->training_ring(), 4);
      scheduler.drain();
      return scheduler.snapshot();
    };
    std::optional<double> loss;
    double first = 0.0;
    const std::vector<dataflow::NamedTensor> with = trained(true, loss, first);
    const std::vector<dataflow::NamedTensor> without = trained(false, loss, first);
    REQUIRE(loss.has_value());
    CHECK(*loss == first);  // to the bit: the same pictures and the same sums
    REQUIRE(with.size() == without.size());
    for (std::size_t i = 0; i < with.size(); ++i) CHECK(with[i].values == without[i].values);
  }
}

TEST_CASE("a loss that is not known tells nothing") {
  CHECK(jobs::learned_nothing(std::nullopt, 1e22, 100).empty());  // a checkpoint of an older program
  CHECK(jobs::learned_nothing(2.3, std::nullopt, 100).empty());
  CHECK(jobs::learned_nothing(2.0, 2.2, 100).empty());
  // The first steps of a short run may raise the loss, but not tenfold.
  CHECK(jobs::learned_nothing(2.0, 20.0, 19).empty());
  CHECK_THAT(jobs::learned_nothing(2.0, 20.1, 1), ContainsSubstring("is 20.1, which is more than 10 times that of"));
  CHECK_THAT(jobs::learned_nothing(2.0, 2.21, 20), ContainsSubstring("is 2.21, which is more than 1.1 times that of"));
}

}  // namespace arbalest::tests
