// Whole runs of matrix factorization by hogwild: what they write, and that the commands on models of layers read it.
#include <atomic>
#include <cmath>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "options/loading/evaluation_job.h"
#include "options/loading/load_job.h"
#include "predict/described_model.h"
#include "saved_model/safetensors.h"
#include "tests/jobs/recorded_run.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_kind.h"
#include "tests/support/ratings_writer.h"
#include "tests/support/source_directory.h"
#include "tests/support/temporary_directory.h"
#include "train/data/dataset_verification.h"
#include "train/inspection.h"
#include "train/processes/shared_job.h"
#include "train/session/session.h"
#include "train/sparse/factorization_model.h"
#include "train/sparse/memory_advice.h"
#include "train/train.h"

namespace arbalest::jobs {

namespace {

class RatingsRun : public RecordedRun {
 public:
  RatingsRun() { tests::write_ratings(root() / "ratings"); }

  static JobOptions job(const std::string& name, std::vector<std::string> overrides = {}) {
    overrides.emplace_back("devices=cpu");
    return load_job(tests::source_directory() + "/configs/" + name, overrides);
  }
  static JobOptions hogwild(const std::vector<std::string>& overrides = {}) {
    return job("matrix-factorization-hogwild.txtpb", overrides);
  }
};

}  // namespace

TEST_CASE("hogwild on ratings comes near the noise, and its model is that of the layers") {
  RatingsRun run;
  for (const std::string learners : {"1", "3"}) {
    CAPTURE(learners);
    const JobOptions job = RatingsRun::hogwild({"learners.per_device.fixed=" + learners});
    const RunSummary summary = run.train(job);
    CHECK(summary.status == RunStatus::kCompleted);
    CHECK(dataflow::score_of(summary.metrics).name == "rmse");
    CHECK(summary.examples == 40 * tests::kTrainingRatings);
    const std::optional<double> rmse = summary.test.value("rmse");
    REQUIRE(rmse.has_value());
    CHECK(*rmse > 0.9 * tests::kRatingNoise);
    CHECK(*rmse < 1.25 * tests::kRatingNoise);
    CHECK(*summary.best_test <= *rmse);
    CHECK(*rmse == std::sqrt(summary.test.loss()));

    const JobOptions saved = load_for_evaluation((run.output() / "job.txtpb").string(), {});
    const EvaluationResult again = evaluate_run(saved, run.model(), summary.model_sha256, run.context());
    CHECK(again.scores.value("rmse") == rmse);
    CHECK(again.examples == tests::kTestRatings);
    const JobOptions layers = RatingsRun::job("matrix-factorization-ratings.txtpb");
    const EvaluationResult by_graph = evaluate_run(layers, run.model(), summary.model_sha256, run.context());
    CHECK(by_graph.scores.value("rmse").value() == Approx(*rmse).epsilon(1e-5));
    CHECK(read_described_model(saved, run.model(), summary.model_sha256).description.ids ==
          std::vector<std::int64_t>{200, 120});
  }
}

TEST_CASE("hogwild on ratings begins where a run with replicas begins") {
  const RatingsRun run;
  const JobOptions layers = RatingsRun::job("matrix-factorization-ratings.txtpb", {"training.seed=5"});
  Session session(layers, run.root().string(), {});
  const std::vector<dataflow::NamedTensor> expected = session.scheduler().snapshot();
  const JobOptions job = RatingsRun::hogwild({"training.seed=5"});
  const std::vector<dataflow::NamedTensor> start = initial_tensors(job);
  REQUIRE(start.size() == expected.size());
  const std::vector<dataflow::NamedTensor> round = to_tensors(job, to_model(start));
  for (std::size_t i = 0; i < start.size(); ++i) {
    CHECK(start[i].name == expected[i].name);
    CHECK(start[i].shape == expected[i].shape);
    CHECK(start[i].values == expected[i].values);
    CHECK(round[i].values == expected[i].values);
  }
}

TEST_CASE("hogwild on ratings: its log has the metrics of a run with replicas") {
  RatingsRun run;
  std::vector<std::vector<std::string>> names;
  for (const JobOptions& job : {RatingsRun::hogwild({"training.max_epochs=1"}),
                                RatingsRun::job("matrix-factorization-ratings.txtpb", {"training.max_epochs=1"})}) {
    run.train(job);
    std::vector<std::string>& of_job = names.emplace_back();
    CHECK(run.events("start").at(0)["metrics"] == std::vector<std::string>{"loss", "rmse"});
    for (const nlohmann::json& row : run.events("epoch")) {
      for (const auto& [name, value] : row.items()) {
        if (name.starts_with("train_") || name.starts_with("test_")) of_job.push_back(name);
      }
      CHECK(row["train_rmse"] == std::sqrt(row["train_loss"].get<double>()));
    }
  }
  CHECK(names[0] == std::vector<std::string>{"test_loss", "test_rmse", "train_loss", "train_rmse"});
  CHECK(names[1] == names[0]);
}

TEST_CASE("hogwild on ratings: one learner is repeatable") {
  RatingsRun run;
  const JobOptions job = RatingsRun::hogwild({"learners.per_device.fixed=1", "training.max_epochs=2"});
  const std::string first = run.train(job).model_sha256;
  CHECK(run.train(job).model_sha256 == first);
  CHECK(run.train(RatingsRun::hogwild({"learners.per_device.fixed=1", "training.max_epochs=2", "training.seed=2"}))
            .model_sha256 != first);
}

TEST_CASE("hogwild on ratings: a signal ends it, and a dry run keeps nothing") {
  RatingsRun run;
  const DryRun done = dry_run(RatingsRun::hogwild(), run.context());
  CHECK_THAT(done.text, ContainsSubstring("one epoch trained (loss 0.") && ContainsSubstring("test RMSE 0."));
  CHECK_FALSE(std::filesystem::exists(run.output()));
  const std::atomic<int> signal = 15;
  const RunSummary stopped = run.train(RatingsRun::hogwild(), &signal);
  CHECK(stopped.status == RunStatus::kStopped);
  CHECK(stopped.epochs == 0);
  CHECK(read_safetensors(run.model(), stopped.model_sha256).size() == 5);
}

TEST_CASE("hogwild on ratings: steps that are too long diverge, and only a finite model is saved") {
  RatingsRun run;
  const RunSummary at_once = run.train(RatingsRun::hogwild({"learning_rate.base=1"}));
  CHECK(at_once.status == RunStatus::kDiverged);
  CHECK_THAT(at_once.message, ContainsSubstring("lower learning_rate.base") && ContainsSubstring("none is saved"));
  CHECK_FALSE(std::filesystem::exists(run.model()));

  const JobOptions job =
      RatingsRun::hogwild({"learning_rate.base=1", "learning_rate.warm_up={ epochs: 20 start_factor: 0.02 }"});
  const RunSummary later = run.train(job);
  CHECK(later.status == RunStatus::kDiverged);
  CHECK(later.epochs > 1);
  CHECK_THAT(later.message, ContainsSubstring("the last finite model is that of epoch"));
  CHECK(later.test.value("rmse").has_value());
  const EvaluationResult saved = evaluate_run(job, run.model(), later.model_sha256, run.context());
  CHECK(saved.scores.value("rmse") == later.test.value("rmse"));
}

TEST_CASE("hogwild on ratings: wrong data, other models and foreign commands are refused") {
  RatingsRun run;
  using engine::ErrorKind;
  CHECK(tests::kind_of_failure([&] { run.train(RatingsRun::hogwild({"data.ratings.sizes=[200, 119]"})); }) ==
        ErrorKind::kData);
  const JobOptions job = RatingsRun::hogwild({"training.max_epochs=1"});
  CHECK(tests::kind_of_failure([&] { inspect(job); }) == ErrorKind::kInvalidJob);
  CHECK(verify_dataset(job, run.root().string()).is_sound());
  const RunSummary summary = run.train(job);
  const auto evaluate = [&](const JobOptions& as, const EvaluationOptions& options) {
    return tests::kind_of_failure([&] { evaluate_run(as, run.model(), summary.model_sha256, run.context(), options); });
  };
  CHECK(evaluate(job, {.per_class = true}) == ErrorKind::kUsage);
  CHECK(evaluate(job, {.set = EvaluationSet::kValidation}) == ErrorKind::kUsage);
  CHECK(evaluate(RatingsRun::hogwild({"model.zoo.matrix_factorization.width=5"}), {}) == ErrorKind::kCheckpoint);
}

TEST_CASE("hogwild on ratings: without memory, the error names the model's width and the ratings") {
  const JobOptions job = RatingsRun::hogwild();
  CHECK_THROWS_WITH(with_memory_advice(job, [] { throw std::bad_alloc(); }),
                    ContainsSubstring("out of memory; use a smaller model.zoo.matrix_factorization.width") &&
                        !ContainsSubstring("features"));
  CHECK_THROWS_WITH(with_memory_advice(job, [] { engine::fail(engine::ErrorKind::kData, "another error"); }),
                    "another error");
}

TEST_CASE("hogwild on ratings: several processes are refused on each of them") {
  const std::string path = tests::source_directory() + "/configs/matrix-factorization-hogwild.txtpb";
  const std::vector<std::string> settings{"devices=cpu"};
  for (const std::string& thrown :
       tests::messages_of_ranks(2, [&](engine::process::World& world) { load_shared_job(world, path, settings); })) {
    CHECK_THAT(thrown, ContainsSubstring("this run has 2 processes; start it without mpirun or srun"));
  }
}

}  // namespace arbalest::jobs
