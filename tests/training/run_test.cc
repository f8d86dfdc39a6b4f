// Whole runs through jobs::train: accuracy on digits and MNIST, and the files of a run.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "engine/host/topology.h"
#include "report/json.h"
#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/data_root.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"
#include "train/context/accuracy_target.h"
#include "train/session/session.h"
#include "train/train.h"

namespace arbalest::tests {

using jobs::RunStatus;
using jobs::RunSummary;

TEST_CASE("on digits a linear model stays below 93 % and LeNet passes 99 %", "[training]") {
  const RunSummary linear = run(load("logistic-digits.txtpb", {}));
  CHECK(linear.status == RunStatus::kCompleted);
  CHECK(linear.best_test < 0.93);
  CHECK(linear.best_test > 0.5);
  const RunSummary lenet = run(load("lenet-digits.txtpb", {}));
  CHECK(lenet.status == RunStatus::kTargetReached);
  CHECK(lenet.test.value("accuracy") >= 0.99);
  CHECK(lenet.time_to_accuracy_seconds.has_value());
}

TEST_CASE("every optimizer learns the digits, with clipped gradients and a schedule", "[training]") {
  for (const char* optimizer :
       {"{ sgd { momentum: 0.9 nesterov: true weight_decay: 5e-4 } clip_gradient_norm: 2 }", "{ rmsprop {} }",
        "{ rmsprop { momentum: 0.5 weight_decay: 1e-4 } clip_gradient_norm: 2 }",
        "{ adamw {} exclude_from_weight_decay: BIASES clip_gradient_norm: 2 }"}) {
    CAPTURE(optimizer);
    const bool is_sgd = std::string(optimizer).find("sgd") != std::string::npos;
    const RunSummary summary =
        run(load("logistic-digits.txtpb",
                 {"model={ zoo { mlp { hidden: 64 } } }", std::string("optimizer=") + optimizer,
                  is_sgd ? "learning_rate.base=0.02" : "learning_rate.base=0.001", "learning_rate.one_cycle={}",
                  "learning_rate.warm_up.epochs=0.1", "training.max_epochs=3", "learners.per_device.fixed=2"}));
    CHECK(summary.status == RunStatus::kCompleted);
    CHECK(summary.test.value("accuracy").value() > 0.96);  // a linear model stays below 0.88
  }
}

namespace {

using Model = std::vector<dataflow::NamedTensor>;

// Euclidean norm of the weights, or of their distance from `origin`.
double norm_of(const Model& model, const Model* origin = nullptr) {
  double squares = 0.0;
  for (std::size_t t = 0; t < model.size(); ++t) {
    for (std::size_t i = 0; i < model[t].values.size(); ++i) {
      const double from = origin == nullptr ? 0.0 : double{(*origin)[t].values[i]};
      squares += std::pow(double{model[t].values[i]} - from, 2);
    }
  }
  return std::sqrt(squares);
}

// The model before and after 100 steps of one learner with a constant learning rate of 0.01.
struct Steps {
  Model before;
  Model after;
};
Steps hundred_steps_with(const std::string& optimizer) {
  const jobs::JobOptions job =
      load("logistic-digits.txtpb", {"model={ zoo { mlp { hidden: 64 } } }", "learners.per_device.fixed=1",
                                     "optimizer=" + optimizer, "learning_rate.base=0.01"});
  jobs::Session session(job, "", {});
  Steps steps{.before = session.scheduler().snapshot(), .after = {}};
  session.scheduler().advance(session.training_ring(), 100);
  session.scheduler().drain();
  steps.after = session.scheduler().snapshot();
  return steps;
}

}  // namespace

TEST_CASE("a job's clipping bounds the steps of its optimizer", "[training]") {
  const Steps clipped = hundred_steps_with("{ sgd {} clip_gradient_norm: 0.001 }");
  constexpr double kBound = 100 * 0.01 * 0.001;  // steps * learning rate * norm
  const double distance = norm_of(clipped.after, &clipped.before);
  CHECK(distance < 1.01 * kBound);
  CHECK(distance > 0.1 * kBound);
  const Steps free = hundred_steps_with("{ sgd {} }");
  CHECK(norm_of(free.after, &free.before) > 100 * kBound);
}

TEST_CASE("a job's weight decay shrinks its weights", "[training]") {
  // The gradient is negligible beside the decay, so each step multiplies a weight by 1 - 0.01 * 0.5.
  const Steps decayed = hundred_steps_with("{ sgd { weight_decay: 0.5 } clip_gradient_norm: 1e-6 }");
  CHECK(norm_of(decayed.after) == Approx(std::pow(1.0 - 0.01 * 0.5, 100) * norm_of(decayed.before)).epsilon(1e-4));
}

TEST_CASE("a net with batch norm learns the digits, and its file evaluates to what the run reported", "[training]") {
  for (const std::string learners : {"1", "2"}) {
    CAPTURE(learners);
    const TemporaryDirectory directory;
    const std::vector<std::string> overrides{"learners.per_device.fixed=" + learners, "training.max_epochs=1"};
    const jobs::JobOptions job = load("convnet-digits.txtpb", overrides);
    const RunSummary summary = run(job, directory.path().string());
    CHECK(summary.status == RunStatus::kCompleted);
    // Two learners take half as many steps each.
    CHECK(summary.test.value("accuracy").value() > (learners == "1" ? 0.95 : 0.8));
    const std::string model = (directory.path() / "model.safetensors").string();
    const jobs::EvaluationResult again = jobs::evaluate_run(job, model, summary.model_sha256, {});
    CHECK(again.scores.value("accuracy") == summary.test.value("accuracy"));
    CHECK(again.scores.value("loss") == summary.test.value("loss"));
    double largest = 0.0;  // largest running variance; variances start at 1
    int statistics = 0;
    for (const dataflow::NamedTensor& tensor : jobs::read_safetensors(model, summary.model_sha256)) {
      if (!tensor.name.ends_with(".running_mean") && !tensor.name.ends_with(".running_var")) continue;
      ++statistics;
      for (const float value : tensor.values) largest = std::max(largest, std::abs(static_cast<double>(value) - 1.0));
    }
    CHECK(statistics == 6);
    CHECK(largest > 0.1);
  }
}

TEST_CASE("a job's moving average is what its run evaluates and saves", "[training]") {
  std::vector<std::string> models;
  for (const std::string epochs : {"0", "0.5"}) {
    const TemporaryDirectory directory;
    const jobs::JobOptions job = load("logistic-digits.txtpb", {"training.max_epochs=1", "learners.per_device.fixed=2",
                                                                "training.moving_average_epochs=" + epochs});
    const RunSummary summary = run(job, directory.path().string());
    const std::string model = (directory.path() / "model.safetensors").string();
    CHECK(jobs::evaluate_run(job, model, summary.model_sha256, {}).scores.value("accuracy") ==
          summary.test.value("accuracy"));
    models.push_back(summary.model_sha256);
  }
  CHECK(models[0] != models[1]);
}

TEST_CASE("photos of many sizes train from their JPEG files", "[training][data]") {
  tests::dataset_or_skip("caltech-101-10c");
  const RunSummary summary =
      run(load("lenet-caltech10.txtpb", {"learners.per_device.fixed=1", "training.max_epochs=3",
                                         "learning_rate.multistep.drop={epoch: 2 factor: 0.1}"}));
  CHECK(summary.test.value("accuracy").value() > 0.5);  // each of the ten classes has 10 % of the images
  CHECK(summary.skipped_examples == 0);
}

TEST_CASE("LeNet reaches 99 % on MNIST within four epochs", "[training][mnist]") {
  const char* root = std::getenv("ARBALEST_DATA");
  if (root == nullptr || !std::filesystem::exists(std::filesystem::path(root) / "mnist")) {
    tests::skip_test("no MNIST under $ARBALEST_DATA");
  }
  const RunSummary summary = run(load("lenet-mnist.txtpb", {"learners.per_device.fixed=2"}));
  CHECK(summary.status == RunStatus::kTargetReached);
  CHECK(summary.epochs <= 4);  // three with either of two seeds and 1, 2 or 4 learners; the job allows ten
  CHECK(summary.best_test >= 0.99);
}

TEST_CASE("a top-k accuracy of the job is in every report, and the model is the same", "[training]") {
  const TemporaryDirectory directory;
  const std::vector<std::string> shared = {"learners.per_device.fixed=2", "training.max_epochs=1"};
  for (const char* name : {"plain", "chosen"}) std::filesystem::create_directories(directory / name);
  const RunSummary plain = run(load("logistic-digits.txtpb", shared), (directory / "plain").string());
  std::vector<std::string> overrides = shared;
  overrides.emplace_back("model.accuracy={ top_k: 3 top_k: 9 }");
  const jobs::JobOptions job = load("logistic-digits.txtpb", overrides);
  const RunSummary summary = run(job, (directory / "chosen").string());
  CHECK(summary.model_sha256 == plain.model_sha256);
  CHECK(summary.test.value("accuracy") == plain.test.value("accuracy"));
  CHECK(summary.test.value("top3_accuracy").value() > summary.test.value("accuracy").value());
  CHECK(summary.test.value("top9_accuracy").value() > summary.test.value("top3_accuracy").value());
  CHECK_FALSE(summary.test.value("top5_accuracy").has_value());
  const jobs::EvaluationResult again =
      jobs::evaluate_run(job, (directory / "chosen/model.safetensors").string(), summary.model_sha256, {});
  for (const char* name : {"loss", "accuracy", "top3_accuracy", "top9_accuracy"}) {
    CHECK(again.scores.value(name) == summary.test.value(name));
  }
  CHECK(jobs::to_json(again)["test_top3_accuracy"] == *summary.test.value("top3_accuracy"));
  CHECK(jobs::to_json(summary)["test_top9_accuracy"] == *summary.test.value("top9_accuracy"));
}

TEST_CASE("the same job writes the same model, and another seed a different one", "[training]") {
  const TemporaryDirectory directory;
  const auto train_into = [&](const std::string& name, const std::string& seed) {
    const std::string path = (directory.path() / name).string();
    std::filesystem::create_directories(path);
    const RunSummary summary = run(load("logistic-digits.txtpb", {"learners.per_device.fixed=3",
                                                                  "training.max_epochs=1", "training.seed=" + seed}),
                                   path);
    CHECK(summary.epochs == 1);
    CHECK(summary.learners == 3);
    return summary;
  };
  const RunSummary first = train_into("a", "1");
  CHECK(train_into("b", "1").model_sha256 == first.model_sha256);
  CHECK(train_into("c", "2").model_sha256 != first.model_sha256);

  // The saved model evaluates to the accuracy that the run reported, to the last digit.
  const jobs::JobOptions job = load("logistic-digits.txtpb", {"learners.per_device.fixed=3"});
  const jobs::EvaluationResult again =
      jobs::evaluate_run(job, (directory.path() / "a" / "model.safetensors").string(), first.model_sha256, {});
  CHECK(again.scores.value("accuracy") == first.test.value("accuracy"));
  CHECK(first.test.value("top5_accuracy") > first.test.value("accuracy"));
  CHECK(again.scores.value("top5_accuracy") == first.test.value("top5_accuracy"));
  CHECK(again.scores.value("loss") == first.test.value("loss"));
  CHECK(again.examples == 5000);
}

TEST_CASE("a session trains the same model with images gathered on the device or from a ring", "[training]") {
  const std::string augmentation =
      GENERATE("data.augmentation={}", "data.augmentation={padding: 2 horizontal_flip: true cutout: 5}",
               "data.augmentation={random_resized_crop: {min_area: 0.5} padding: 1}");
  const jobs::JobOptions job = load("lenet-digits.txtpb", {"learners.per_device.fixed=2", augmentation});
  using jobs::Session;
  Session cached(job, "", {});
  Session ring(job, "", {}, Session::Input::kRing);
  CHECK(cached.training_ring().next()->tensors.empty());
  CHECK_FALSE(ring.training_ring().next()->tensors.empty());
  CHECK(cached.training_data().stored_bytes()->augmentation == job.data.augmentation);
  CHECK_FALSE(cached.evaluation_data().stored_bytes()->augmentation.changes_images());
  std::vector<std::vector<dataflow::NamedTensor>> models;
  std::vector<double> losses;
  for (Session* session : {&cached, &ring}) {
    session->training_ring().release(0);
    session->training_ring().restart();
    session->scheduler().advance(session->training_ring(), 20);
    session->scheduler().drain();
    losses.push_back(session->scheduler().evaluate(session->test_ring()).loss());
    models.push_back(session->scheduler().snapshot());
    CHECK(session->warnings().empty());
  }
  CHECK(losses[0] == losses[1]);
  for (std::size_t i = 0; i < models[0].size(); ++i) CHECK(models[0][i].values == models[1][i].values);
}

TEST_CASE("a job on two devices of unequal size trains, and evaluates again", "[training]") {
  const std::vector<int> cores = engine::host::allowed_cores();
  if (cores.size() < 3) tests::skip_test("needs three cores");
  const TemporaryDirectory directory;
  const std::vector<std::string> overrides{"devices=cpu:" + std::to_string(cores[0]),
                                           "devices=cpu:" + std::to_string(cores[1]) + "," + std::to_string(cores[2]),
                                           "learners.per_device.fixed=1", "training.max_epochs=1"};
  const jobs::JobOptions job = load("lenet-digits.txtpb", overrides);
  const RunSummary summary = run(job, directory.path().string());
  CHECK(summary.learners == 2);
  CHECK(summary.test.value("accuracy") > 0.9);
  const std::string model = (directory.path() / "model.safetensors").string();
  CHECK(jobs::evaluate_run(job, model, summary.model_sha256, {}).scores.value("accuracy") ==
        summary.test.value("accuracy"));
}

TEST_CASE("rounds that span more than an epoch are refused", "[training]") {
  jobs::JobOptions job = load("logistic-digits.txtpb", {"training.batch_size=5000", "learners.per_device.fixed=4"});
  job.learners_per_device = {5};  // as if the files held fewer examples than assumed when the job file was checked
  CHECK_THROWS_WITH(run(job), ContainsSubstring("needs 5 mini-batches, but an epoch has 4"));
}

TEST_CASE("a damaged model is refused by evaluation", "[training]") {
  const TemporaryDirectory directory;
  const jobs::JobOptions job = load("logistic-digits.txtpb", {"training.max_epochs=1"});
  run(job, directory.path().string());
  const std::string path = (directory.path() / "model.safetensors").string();
  std::vector<dataflow::NamedTensor> tensors = jobs::read_safetensors(path);
  tensors[0].values[7] = std::numeric_limits<float>::quiet_NaN();
  std::string sha256 = jobs::write_safetensors(path, tensors, {});
  CHECK_THROWS_WITH(jobs::evaluate_run(job, path, sha256, {}), ContainsSubstring("not finite"));
  tensors.pop_back();
  tensors[0].values[7] = 0.0F;
  CHECK_THROWS_WITH(jobs::evaluate_run(job, path, "another", {}), ContainsSubstring("its SHA-256 is"));
  sha256 = jobs::write_safetensors(path, tensors, {});
  CHECK_THROWS_WITH(jobs::evaluate_run(job, path, sha256, {}),
                    ContainsSubstring("is missing") && ContainsSubstring(path));
}

TEST_CASE("a target counts as reached by the lower median of the last five accuracies", "[training]") {
  jobs::AccuracyTarget target(0.9);
  CHECK_FALSE(target.add(0.85));
  CHECK_FALSE(target.add(0.95));  // the lower median of two is the smaller one
  CHECK(target.add(0.95));
  CHECK_FALSE(target.add(0.8));  // 0.80 0.85 0.95 0.95
  CHECK(target.add(0.9));        // 0.80 0.85 0.90 0.95 0.95
  CHECK(target.add(0.91));       // the first one is dropped
  CHECK(target.held() == jobs::HeldAccuracy{.accuracy = 0.91, .evaluations = 5});
  jobs::AccuracyTarget none(std::nullopt);
  CHECK_FALSE(none.held().has_value());
  CHECK_FALSE(none.add(1.0));
  CHECK(to_string(*none.held(), 1.0) == "the one evaluation gave 100.00 %");
}

TEST_CASE("a dry run does one round of each phase and writes nothing", "[training]") {
  const std::string line = jobs::dry_run(load("lenet-digits.txtpb", {"learners.per_device.fixed=2"}), {}).text;
  CHECK_THAT(line, ContainsSubstring("2 mini-batches") && ContainsSubstring("5,000 test examples"));
}

}  // namespace arbalest::tests
