// The plan that `arbalest bench` makes from its arguments, before anything runs.
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "study/bench/bench_plan.h"
#include "tests/support/catch.h"
#include "tests/support/source_directory.h"

namespace arbalest::jobs {
namespace {

std::string config(const std::string& name) { return tests::source_directory() + "/configs/" + name + ".txtpb"; }

BenchRequest some_request() {
  return {.jobs = {config("logistic-digits")},
          .settings = {},
          .variations = {},
          .seeds = "1..3",
          .target = 0.8,
          .no_target = false};
}

// Returns the error message for an invalid request.
std::string refusal(const BenchRequest& request) {
  try {
    plan_bench(request);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

std::string refused_variation(const std::string& variation) {
  BenchRequest request = some_request();
  request.variations = {variation};
  return refusal(request);
}

std::string refused_seeds(const std::string& seeds) {
  BenchRequest request = some_request();
  request.seeds = seeds;
  return refusal(request);
}

}  // namespace

TEST_CASE("bench plan: several variations make the cross product, for every job") {
  BenchRequest request = some_request();
  request.jobs.push_back(config("mlp-mnist"));
  request.settings = {"training.max_epochs=2"};
  request.variations = {"training.batch_size=16,32", "learners.per_device={fixed: 1},{auto: {min: 1, max: 2}}"};
  const BenchPlan plan = plan_bench(request);
  REQUIRE(plan.cases.size() == 8);
  CHECK(plan.runs() == 24);
  CHECK(plan.target == 0.8);
  CHECK(plan.cases[0].label == "logistic-digits training.batch_size=16 learners.per_device={fixed: 1}");
  CHECK(plan.cases[0].name == "logistic-digits, batch_size=16, per_device={fixed: 1}");
  CHECK(plan.cases[0].series_name == "logistic-digits, batch_size=16");
  CHECK(plan.cases[1].varied[1].second == "{auto: {min: 1, max: 2}}");
  CHECK(plan.cases[1].series_name == plan.cases[0].series_name);
  CHECK(plan.cases[2].batch_size == 32);
  CHECK(plan.cases[2].settings.front() == "training.max_epochs=2");
  CHECK(plan.cases[7].job == "mlp-mnist");
  CHECK(plan.cases[7].directory == "8-mlp-mnist");
}

TEST_CASE("bench plan: seeds are ranges and lists, and a job that is given twice gets two labels") {
  BenchRequest request = some_request();
  request.seeds = "7,1..3,5";
  request.jobs.push_back(request.jobs.front());
  const BenchPlan plan = plan_bench(request);
  CHECK(plan.seeds == std::vector<std::uint64_t>{7, 1, 2, 3, 5});
  REQUIRE(plan.cases.size() == 2);
  CHECK(plan.cases[0].label == "logistic-digits");
  CHECK(plan.cases[1].label == "logistic-digits (2)");
  CHECK(plan.cases[0].name == "logistic-digits");
  CHECK(plan.cases[1].name == "logistic-digits (2)");
}

TEST_CASE("bench plan: invalid, missing and repeated seeds are refused") {
  CHECK_THAT(refused_seeds(""), ContainsSubstring("--seeds is empty"));
  CHECK_THAT(refused_seeds("5..1"), ContainsSubstring("5..1 is empty"));
  CHECK_THAT(refused_seeds("1,,2"), ContainsSubstring("'' is no seed"));
  CHECK_THAT(refused_seeds("1..x"), ContainsSubstring("'x' is no seed"));
  CHECK_THAT(refused_seeds("-1"), ContainsSubstring("'-1' is no seed"));
  CHECK_THAT(refused_seeds("1..3,2"), ContainsSubstring("2 is given twice"));
  CHECK_THAT(refused_seeds("0..18446744073709551615"), ContainsSubstring("more than 1000 seeds"));
}

TEST_CASE("bench plan: the target is an accuracy and must be the same for all jobs") {
  BenchRequest request = some_request();
  for (const double target : {1.01, 0.0, -0.5}) {
    request.target = target;
    CHECK_THAT(refusal(request), ContainsSubstring("an accuracy must be above 0 and at most 1"));
  }
  request.target = 99.0;
  CHECK_THAT(refusal(request), ContainsSubstring("did you mean 0.99?"));
  request.target.reset();
  CHECK(plan_bench(request).target == std::nullopt);
  request.jobs = {config("lenet-digits"), config("lenet-mnist")};
  CHECK(plan_bench(request).target == 0.99);
  request.jobs = {config("lenet-digits"), config("logistic-digits")};
  CHECK_THAT(refusal(request), ContainsSubstring("the jobs have different target accuracies (0.99 and none)"));
  request.no_target = true;
  const BenchPlan plan = plan_bench(request);
  CHECK(plan.target == std::nullopt);
  for (const BenchCase& of : plan.cases) CHECK(of.settings.back() == "training.target_accuracy=default");
}

TEST_CASE("bench plan: jobs without an accuracy are refused") {
  BenchRequest request = some_request();
  request.target.reset();
  request.jobs = {config("matrix-factorization-ratings")};
  CHECK_THAT(refusal(request), ContainsSubstring("which have no accuracy"));
}

TEST_CASE("bench plan: --vary accepts a scheme's bare name, and case names say what differs") {
  BenchRequest request = some_request();
  request.variations = {"synchronization=sma,sma{period: 4}", "learners.per_device.fixed=1,4", "training.max_epochs=3",
                        "learning_rate.with_learners=SQRT,LINEAR"};
  const BenchPlan plan = plan_bench(request);
  REQUIRE(plan.cases.size() == 8);
  CHECK(plan.cases[0].name == "sma, 1 learner, with_learners=SQRT");
  CHECK(plan.cases[7].name == "sma{period: 4}, 4 learners, with_learners=LINEAR");
  CHECK(plan.cases[7].series_name == "sma{period: 4}, with_learners=LINEAR");
  CHECK(plan.cases[0].job_sha256 != plan.cases[7].job_sha256);
  CHECK(plan_bench(request).cases[7].job_sha256 == plan.cases[7].job_sha256);

  request.variations = {"optimizer.sgd.momentum=0,0.5", "synchronization.sma.central_momentum=0,0.5"};
  CHECK(plan_bench(request).cases[0].name == "momentum=0, central_momentum=0");
  request.variations = {"learners.per_device.fixed=1,2"};
  CHECK(plan_bench(request).cases[1].series_name == "logistic-digits");
  request.variations = {};
  CHECK(plan_bench(request).cases[0].name == "logistic-digits");
}

TEST_CASE("bench plan: the error for an invalid variation names --vary") {
  CHECK_THAT(
      refused_variation("training.bach_size=16,32"),
      ContainsSubstring("--vary training.bach_size=16: error: ") && ContainsSubstring("did you mean 'batch_size'"));
  CHECK_THAT(refused_variation("training.batch_size=16,-1"),
             ContainsSubstring("--vary training.batch_size=-1: error: "));
  CHECK_THAT(refused_variation("synchronization=sma,s_gd"),
             ContainsSubstring("--vary synchronization=s_gd: error: 's_gd' is not an alternative of synchronization"));
  CHECK_THAT(refused_variation("training.batch_size"), ContainsSubstring("expected path=value,value"));
  CHECK_THAT(refused_variation("training.batch_size=16,"), ContainsSubstring("a value is missing"));
  CHECK_THAT(refused_variation("training.batch_size=16,16"), ContainsSubstring("16 is given twice"));
  CHECK_THAT(refused_variation("training.seed=1,2"), ContainsSubstring("give the seeds with --seeds"));
  CHECK_THAT(refused_variation("training.target_accuracy=0.1"), ContainsSubstring("give the target with --target"));
  BenchRequest request = some_request();
  request.variations = {"training.batch_size=16", "training.batch_size=32"};
  CHECK_THAT(refusal(request), ContainsSubstring("training.batch_size varies already"));
}

}  // namespace arbalest::jobs
