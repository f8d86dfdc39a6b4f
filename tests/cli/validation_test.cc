// A validation set through the program: training, evaluation, bench.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

namespace {

std::vector<std::string> small_run(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = kSmall;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("validation: train reports it, and evaluate gives exactly the same accuracies on both sets") {
  const Program program;
  const Completed trained =
      program.run(small_run({"--set", "data.validation.fraction=0.1", "--set", "training.target_accuracy=0.5"}));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK_THAT(trained.err, ContainsSubstring("18,000 training, 2,000 validation and 5,000 test examples") &&
                              ContainsSubstring("at 50.00 % validation accuracy"));
  CHECK_THAT(trained.out, ContainsSubstring("validation accuracy") && ContainsSubstring("test accuracy") &&
                              ContainsSubstring("s to 50.00 % validation accuracy"));
  const auto summary = summary_of(program / "run");
  CHECK(summary["accuracy_set"] == "validation");
  CHECK(summary["status"] == "target_reached");
  const auto score = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"evaluate", "run", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Completed done = program.run(arguments);
    CHECK(done.exit_code == 0);
    CHECK(done.err.empty());  // no warning about a different accuracy
    return nlohmann::json::parse(done.out);
  };
  CHECK(score({})["test_accuracy"] == summary["test_accuracy"]);
  CHECK(score({"--split", "test"})["test_loss"] == summary["test_loss"]);
  const auto validation = score({"--split", "validation"});
  CHECK(validation["validation_accuracy"] == summary["validation_accuracy"]);
  CHECK(validation["validation_loss"] == summary["validation_loss"]);
  CHECK(validation["examples"] == 2000);
  CHECK_THAT(program.run({"evaluate", "run", "--split", "validation"}).out,
             ContainsSubstring("validation_accuracy 0.") && ContainsSubstring("validation_loss"));

  auto changed = summary;
  changed["validation_accuracy"] = 0.125;
  write_text(program / "run/summary.json", changed.dump());
  CHECK_THAT(program.run({"evaluate", "run", "--split", "validation"}).err,
             ContainsSubstring("validation_accuracy is") && ContainsSubstring("was 0.125 when"));
}

TEST_CASE("validation: an unknown split, or a split that the run does not have, is refused") {
  const Program program;
  REQUIRE(program.run(kSmall).exit_code == 0);
  CHECK(program.run({"evaluate", "run", "--split", "training"}).exit_code == 2);
  const Completed none = program.run({"evaluate", "run", "--split", "validation"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, ContainsSubstring("has no validation set (data.validation)"));
  CHECK(none.out.empty());
}

TEST_CASE("validation: an impossible fraction exits 3 and shows its position in the job") {
  const Program program;
  write_text(program / "job.txtpb",
             "model { zoo { logistic_regression {} } }\n"
             "data { digits {}\n"
             "  validation { fraction: 0.7 } }\n"
             "learning_rate { base: 0.01 }\n");
  const Completed done = program.run({"train", "job.txtpb"});
  CHECK(done.exit_code == 3);
  CHECK_THAT(done.err, ContainsSubstring("job.txtpb:3:16: error: fraction must be in (0, 0.5], not 0.7"));
}

TEST_CASE("validation: bench compares the target with the validation accuracy") {
  const Program program;
  const Completed done = program.run({"bench", Program::config("logistic-digits"), "--set", "training.max_epochs=1",
                                      "--set", "learners.per_device.fixed=1", "--set", "data.validation.fraction=0.1",
                                      "--target", "0.5", "--seeds", "1", "--output", "out", "--json"});
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  const auto run = nlohmann::json::parse(done.out)["cases"][0]["runs"][0];
  const auto summary =
      nlohmann::json::parse(read_text(program / "out" / run["directory"].get<std::string>() / "summary.json"));
  CHECK(run["validation_accuracy"] == summary["validation_accuracy"]);
  CHECK(run["best_validation_accuracy"] == summary["best_validation_accuracy"]);
  CHECK(run["test_accuracy"] == summary["test_accuracy"]);
  CHECK(run["epoch_rows"][0]["validation_accuracy"] == summary["validation_accuracy"]);
  CHECK_THAT(read_text(program / "out/bench.html"), ContainsSubstring("Time to 50.00 % validation accuracy"));
}

}  // namespace arbalest::tests
