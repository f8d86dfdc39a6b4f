// Whole runs of sparse jobs: what they write, how they end, and that evaluation finds the same.
#include <algorithm>
#include <atomic>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "options/loading/evaluation_job.h"
#include "report/json.h"
#include "saved_model/safetensors.h"
#include "tests/jobs/job_text.h"
#include "tests/jobs/recorded_run.h"
#include "tests/support/error_kind.h"
#include "tests/support/reference_logistic.h"
#include "tests/support/sparse_data.h"
#include "tests/support/temporary_directory.h"
#include "train/data/dataset_verification.h"
#include "train/inspection.h"
#include "train/sparse/sparse_methods.h"
#include "train/train.h"

namespace arbalest::jobs {

namespace {

constexpr double kL1 = 0.004;

class SparseRun : public RecordedRun {
 public:
  SparseRun() {
    tests::write_text(root() / "train.libsvm", tests::libsvm_text(train_));
    tests::write_text(root() / "test.libsvm", tests::libsvm_text(tests::make_sparse_rows({.rows = 150}, 22)));
  }

  static JobOptions job(const std::string& scheme, const std::vector<std::string>& overrides = {}) {
    return parse(fmt::format("name: \"sparse\"\n"
                             "model {{ sparse_logistic {{}} }}\n"
                             "data {{ libsvm {{ directory: \".\" features: 60 }} }}\n"
                             "learners {{ per_device {{ fixed: 2 }} }}\n"
                             "devices: \"cpu\"\n"
                             "synchronization {{ {} }}\n",
                             scheme),
                 overrides);
  }

  const dataflow::SparseRows& train_rows() const { return train_; }

 private:
  dataflow::SparseRows train_ = tests::make_sparse_rows({}, 21);
};

const std::string kProximal = fmt::format("delayed_proximal {{ l1: {} blocks: 8 max_delay: 2 tolerance: 1e-7 }}", kL1);

}  // namespace

TEST_CASE("the learners of a sparse job share the cores that its devices name") {
  JobOptions job = SparseRun::job("hogwild {}", {"learning_rate.base=0.1"});
  CHECK(cores_of_learners(job) == std::vector<std::vector<int>>{{}, {}});  // no core is named
  job.devices.front().cores = {4, 7};
  job.learners_per_device = {3};
  CHECK(cores_of_learners(job) == std::vector<std::vector<int>>{{4}, {7}, {4}});
}

TEST_CASE("sparse run: without memory, the error names what a user of the model can change") {
  struct Greedy final : RunObserver {
    void on_start(const RunStart& /*start*/) override { throw std::bad_alloc(); }
    void on_progress(const RunProgress& /*progress*/) override {}
    void on_epoch(const EpochRow& /*row*/) override {}
    void on_finish(const RunSummary& summary) override { message = summary.message; }
    std::string message;
  };
  const SparseRun run;
  Greedy greedy;
  RunContext context = run.context();
  context.observers = {&greedy};
  const auto failing = [&] { train(SparseRun::job(kProximal), context); };
  CHECK(tests::kind_of_failure(failing) == engine::ErrorKind::kOutOfMemory);
  CHECK(greedy.message == "out of memory; use fewer features (data.libsvm.features) or fewer rows");
}

TEST_CASE("sparse run: delayed_proximal ends at the minimum and writes the files of a run") {
  SparseRun run;
  const JobOptions job = SparseRun::job(kProximal);
  const RunSummary summary = run.train(job);
  CHECK(summary.status == RunStatus::kCompleted);
  CHECK(summary.epochs < 100);
  const tests::LogisticProblem problem(run.train_rows(), kL1);
  const double least = problem.objective(problem.minimum(4000));
  REQUIRE(summary.sparse);
  CHECK(summary.sparse->objective == Approx(least).epsilon(1e-4));

  const std::vector<nlohmann::json> epochs = run.events("epoch");
  REQUIRE(std::cmp_equal(epochs.size(), summary.epochs));
  for (const char* field : {"objective", "non_zeros", "active_coordinates", "kkt_violation", "step", "train_loss",
                            "train_accuracy", "test_loss", "test_accuracy", "images_per_second"}) {
    INFO(field);
    CHECK(epochs.back()[field].is_number());
  }
  for (const char* field : {"batch", "learning_rate", "replica_distance", "replica_spread", "train_top5_accuracy",
                            "test_top5_accuracy", "host_microseconds_per_step"}) {
    INFO(field);
    CHECK_FALSE(epochs.back().contains(field));
  }
  CHECK(epochs.back()["objective"] == summary.sparse->objective);
  CHECK(epochs.back()["active_coordinates"] == 61);  // the last epoch has looked at all of them
  CHECK(epochs[epochs.size() / 2]["active_coordinates"] < 61);
  CHECK(epochs.back()["test_accuracy"] > 0.6);
  CHECK(run.summary()["status"] == "completed");
  CHECK(run.summary()["non_zeros"] == summary.sparse->non_zeros);
  CHECK(run.events("start")[0]["scheme"] == "8 blocks of coordinates, delay at most 2, l1 0.004");
  const nlohmann::json start = run.events("start")[0];
  CHECK(start["metrics"] == std::vector<std::string>{"loss", "accuracy"});
  for (const char* field : {"batch_size", "precision", "dropped_examples"}) CHECK_FALSE(start.contains(field));
  for (const char* field : {"mini_batches", "skipped_examples", "precision", "test_top5_accuracy"}) {
    CHECK_FALSE(run.summary().contains(field));
    CHECK_FALSE(run.events("finish")[0].contains(field));
  }
  CHECK(epochs.back()["test_accuracy"] == summary.test.value("accuracy").value());

  const auto tensors = read_safetensors(run.output() / "model.safetensors", summary.model_sha256);
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "weight");
  CHECK(tensors[0].shape == engine::Shape{1, 60});
  CHECK(tensors[1].name == "bias");
  std::vector<double> w(tensors[0].values.begin(), tensors[0].values.end());
  w.push_back(tensors[1].values[0]);
  CHECK(problem.objective(w) == Approx(summary.sparse->objective).epsilon(1e-6));
  CHECK(std::ranges::count(tensors[0].values, 0.0F) == 60 - summary.sparse->non_zeros);

  const JobOptions saved = load_for_evaluation((run.output() / "job.txtpb").string(), {});
  const EvaluationResult again = evaluate_run(saved, run.model(), summary.model_sha256, run.context());
  CHECK(again.scores.value("accuracy") == *summary.test.value("accuracy"));
  CHECK(again.scores.value("loss") == *summary.test.value("loss"));
  CHECK(again.examples == 150);
}

TEST_CASE("sparse run: hogwild lowers the loss and is judged by the model that it saves") {
  SparseRun run;
  const RunSummary summary = run.train(SparseRun::job("hogwild {}", {"learning_rate.base=0.1"}));
  CHECK(summary.status == RunStatus::kCompleted);
  CHECK(summary.epochs == 10);
  CHECK(summary.examples == 4000);
  const std::vector<nlohmann::json> epochs = run.events("epoch");
  CHECK(epochs.back()["objective"] < epochs.front()["objective"]);
  CHECK(epochs.back()["objective"] == epochs.back()["train_loss"]);
  CHECK_FALSE(epochs.back().contains("kkt_violation"));
  CHECK(epochs.back()["learning_rate"] == Approx(0.1));
  CHECK_FALSE(epochs.back().contains("step"));
  const JobOptions saved = load_for_evaluation((run.output() / "job.txtpb").string(), {});
  const EvaluationResult again = evaluate_run(saved, run.model(), summary.model_sha256, run.context());
  CHECK(again.scores.value("loss") == *summary.test.value("loss"));
}

TEST_CASE("sparse run: a signal ends it, and the model that it has is saved") {
  for (const std::string& scheme : {kProximal, std::string("hogwild {}")}) {
    INFO(scheme);
    SparseRun run;
    const std::atomic<int> signal = 15;
    std::vector<std::string> overrides;
    if (scheme != kProximal) overrides.emplace_back("learning_rate.base=0.1");
    const RunSummary summary = run.train(SparseRun::job(scheme, overrides), &signal);
    CHECK(summary.status == RunStatus::kStopped);
    CHECK(summary.stop_signal == 15);
    CHECK(summary.epochs == 0);
    CHECK(summary.epochs_begun < 1.0);
    CHECK_THAT(summary.message, ContainsSubstring("stopped by SIGTERM"));
    CHECK(run.summary()["status"] == "stopped");
    CHECK(read_safetensors(run.output() / "model.safetensors", summary.model_sha256).size() == 2);
  }
}

TEST_CASE("sparse run: the last epoch of max_epochs looks at all coordinates") {
  SparseRun run;
  const RunSummary summary = run.train(SparseRun::job(kProximal, {"training.max_epochs=6"}));
  CHECK(summary.epochs == 6);
  const std::vector<nlohmann::json> epochs = run.events("epoch");
  CHECK(epochs[4]["active_coordinates"] < 61);
  CHECK(epochs[5]["active_coordinates"] == 61);
}

TEST_CASE("sparse run: one that ends before the objective has settled says so, with advice for its own options") {
  const auto warning_of = [](const std::string& scheme, const std::vector<std::string>& overrides) {
    SparseRun run;
    run.train(SparseRun::job(scheme, overrides));
    const std::vector<nlohmann::json> warnings = run.events("warning");
    return warnings.empty() ? "" : warnings.back()["text"].get<std::string>();
  };
  const std::string early = warning_of(kProximal, {"training.max_epochs=3"});
  CHECK_THAT(early, ContainsSubstring("the objective has not settled"));
  CHECK(
      early.ends_with("; raise training.max_epochs, or raise synchronization.delayed_proximal.blocks, or lower "
                      "synchronization.delayed_proximal.max_delay"));
  CHECK(warning_of(kProximal, {}).empty());

  // A run that shall train for max_epochs whatever it finds is warned, too, unless it has settled by then.
  const std::string for_ever = "synchronization.delayed_proximal.tolerance=0";
  CHECK_THAT(warning_of(kProximal, {"training.max_epochs=3", for_ever}),
             ContainsSubstring("the objective has not settled"));
  CHECK(warning_of(kProximal, {"training.max_epochs=200", for_ever}).empty());

  // Without a delay, and with one block for each of the 61 coordinates, neither can be changed for the better.
  const std::string finest = fmt::format("delayed_proximal {{ l1: {} blocks: 61 }}", kL1);
  CHECK(warning_of(finest, {"training.max_epochs=2"}).ends_with("; raise training.max_epochs"));
}

TEST_CASE("sparse run: one without a tolerance looks at all coordinates again whenever the objective has settled") {
  SparseRun run;
  run.train(SparseRun::job(kProximal, {"training.max_epochs=200", "synchronization.delayed_proximal.tolerance=0"}));
  const std::vector<nlohmann::json> epochs = run.events("epoch");
  REQUIRE(epochs.size() == 200);
  const auto looks_at_all = [](const nlohmann::json& epoch) { return epoch["active_coordinates"] == 61; };
  const auto filtered = std::ranges::find_if_not(epochs, looks_at_all);
  CHECK(std::any_of(filtered, epochs.end() - 1, looks_at_all));
}

// All features of a row are copies of each other, so the steps of a block overshoot together.
TEST_CASE("sparse run: epochs that are undone do not end it") {
  SparseRun run;
  const dataflow::SparseRows rows =
      tests::make_clustered_rows({.rows = 300, .clusters = 2, .columns_of_cluster = 30}, 23);
  tests::write_text(run.root() / "train.libsvm", tests::libsvm_text(rows));
  const RunSummary summary =
      run.train(SparseRun::job("delayed_proximal { l1: 0 blocks: 2 max_delay: 1 tolerance: 1e-5 }"));
  const std::vector<nlohmann::json> epochs = run.events("epoch");
  REQUIRE(epochs.size() > 20);
  CHECK(epochs[2]["objective"] == epochs[0]["objective"]);  // all three are undone
  CHECK(summary.sparse->objective < 0.9 * epochs[0]["objective"].get<double>());
}

TEST_CASE("sparse run: steps that are too long diverge, and only a finite model is saved") {
  const auto train_on_long_rows = [](SparseRun& run, const std::vector<std::string>& overrides) {
    tests::write_text(run.root() / "train.libsvm", "+1 1:1e38 2:1e38\n-1 1:1e38\n+1 2:1e38\n-1 1:1e38 2:-1e38\n");
    const RunSummary summary = run.train(SparseRun::job("hogwild {}", overrides));
    CHECK(summary.status == RunStatus::kDiverged);
    CHECK_THAT(summary.message, ContainsSubstring("is not finite after"));
    return summary;
  };
  SparseRun at_once;
  const RunSummary none = train_on_long_rows(at_once, {"learning_rate.base=1000"});
  CHECK_THAT(none.message, ContainsSubstring("no epoch has ended with a finite model, so none is saved"));
  CHECK(none.model_sha256.empty());
  CHECK_FALSE(std::filesystem::exists(at_once.output() / "model.safetensors"));
  CHECK(at_once.summary()["test_loss"].is_null());
  CHECK(at_once.summary()["best_test_accuracy"].is_null());

  // The first epoch has the learning rate 0.
  SparseRun later;
  const RunSummary first =
      train_on_long_rows(later, {"learning_rate.base=1000", "learning_rate.warm_up={ epochs: 2 start_factor: 0 }"});
  CHECK_THAT(first.message, ContainsSubstring("the last finite model is that of epoch 1"));
  const auto tensors = read_safetensors(later.output() / "model.safetensors", first.model_sha256);
  REQUIRE(tensors.size() == 2);
  CHECK(std::ranges::count(tensors[0].values, 0.0F) == 60);
  CHECK(first.test.loss() == later.events("epoch")[0]["test_loss"].get<double>());
  CHECK(later.summary()["test_loss"] == first.test.loss());
}

TEST_CASE("sparse run: wrong data leave nothing behind") {
  SparseRun run;
  const auto failure_with = [&](const std::string& text) {
    tests::write_text(run.root() / "train.libsvm", text);
    CHECK(tests::kind_of_failure([&] { run.train(SparseRun::job(kProximal)); }) == engine::ErrorKind::kData);
    CHECK_FALSE(std::filesystem::exists(run.output() / "metrics.jsonl"));
  };
  failure_with("+1 61:1\n");
  failure_with("+1 1:1\n-1 1:");
  failure_with("+1 1:1\n+1 2:1\n");  // one class only
}

TEST_CASE("sparse run: a dry run trains one epoch and keeps nothing") {
  SparseRun run;
  const DryRun done = dry_run(SparseRun::job(kProximal), run.context());
  CHECK_THAT(done.text, ContainsSubstring("sparse: one epoch trained (loss 0."));
  CHECK_FALSE(std::filesystem::exists(run.output()));
}

TEST_CASE("sparse run: what needs a model of layers is refused") {
  SparseRun run;
  const JobOptions job = SparseRun::job(kProximal);
  using engine::ErrorKind;
  CHECK(tests::kind_of_failure([&] { inspect(job); }) == ErrorKind::kInvalidJob);
  CHECK(tests::kind_of_failure([&] { verify_dataset(job, run.context().data_root); }) == ErrorKind::kInvalidJob);
  const RunSummary summary = run.train(job);
  const std::string model = run.model();
  const auto evaluate = [&](const EvaluationOptions& options) {
    return tests::kind_of_failure([&] { evaluate_run(job, model, summary.model_sha256, run.context(), options); });
  };
  CHECK(evaluate({.per_class = true}) == ErrorKind::kUsage);
  CHECK(evaluate({.set = EvaluationSet::kValidation}) == ErrorKind::kUsage);
  JobOptions other = job;
  other.sparse->features = 59;
  CHECK(tests::kind_of_failure([&] { evaluate_run(other, model, "", run.context()); }) == ErrorKind::kCheckpoint);
}

TEST_CASE("sparse run: a loss above that of the untrained model is a divergence, and the finite model is saved") {
  SparseRun run;
  tests::write_text(run.root() / "train.libsvm", "+1 1:1\n-1 1:1\n+1 1:1\n-1 1:1\n");  // nothing tells the rows apart
  const RunSummary summary = run.train(SparseRun::job("hogwild {}", {"learning_rate.base=1000"}));
  CHECK(summary.status == RunStatus::kDiverged);
  // An untrained model calls each row with a probability of 1/2: ln(2) = 0.6931.
  CHECK_THAT(summary.message, ContainsSubstring("more than 1.1 times that of the untrained model, 0.6931; ") &&
                                  ContainsSubstring("lower learning_rate.base"));
  CHECK(std::filesystem::exists(run.output() / "model.safetensors"));
}

}  // namespace arbalest::jobs
