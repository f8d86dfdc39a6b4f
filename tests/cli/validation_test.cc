// A validation set through the program: training, evaluation, bench.
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"
#include "tests/support/small_datasets.h"

namespace arbalest::tests {

namespace {

std::vector<std::string> small_run(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = kSmall;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<nlohmann::json> rows_of(const std::filesystem::path& run) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(read_text(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
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
  CHECK(summary["best_test_accuracy"].is_null());
  CHECK(summary["test_accuracy"].is_number());
  CHECK_THAT(read_text(program / "run/metrics.jsonl"), ContainsSubstring("\"event\":\"epoch\""));
  for (const auto& row : rows_of(program / "run")) CHECK(row.contains("test_loss") == (row["event"] == "finish"));
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

TEST_CASE("validation: files of its own are evaluated, and mistakes in them show a position or a file") {
  const Program program;
  const std::string job =
      "name: 'own'\nmodel { zoo { logistic_regression {} } }\n"
      "data { npy { directory: './arrays' classes: 3 height: 4 width: 5 channels: 1\n"
      "  validation_images: 'val_images.npy' validation_labels: 'val_labels.npy' } }\n"
      "training { batch_size: 4 max_epochs: 2 } learning_rate { base: 0.01 } learners { per_device { fixed: 1 } }\n";
  write_text(program / "job.txtpb", job);
  write_arrays(program / "arrays", false);
  CHECK(program.run({"train", "job.txtpb", "--output", "run"}).exit_code == 4);
  write_array(program / "arrays", "val", false, 12, 7);
  const Completed verified = program.run({"data", "verify", "job.txtpb"});
  CHECK(verified.exit_code == 0);
  CHECK_THAT(verified.out, ContainsSubstring("validation: 12 examples, 3 classes of 4 to 4"));
  const Completed trained = program.run({"train", "job.txtpb", "--output", "run"});
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK_THAT(trained.err, ContainsSubstring("60 training, 12 validation and 60 test examples"));
  const Completed evaluated = program.run({"evaluate", "run", "--split", "validation", "--json"});
  CHECK(evaluated.err.empty());
  CHECK(nlohmann::json::parse(evaluated.out)["validation_loss"] == summary_of(program / "run")["validation_loss"]);
  CHECK(nlohmann::json::parse(program.run({"evaluate", "run", "--checkpoint", "best", "--json"}).out)["examples"] ==
        60);

  const Completed both = program.run({"validate", "job.txtpb", "--set", "data.validation.fraction=0.2"});
  CHECK(both.exit_code == 2);
  CHECK_THAT(both.err, ContainsSubstring("--set data.validation.fraction=0.2: error: validation splits a part off the "
                                         "training set, and data.npy.validation_images names files"));
  write_array(program / "arrays", "val", false, 9);
  const Completed few = program.run({"train", "job.txtpb", "--output", "few"});
  CHECK(few.exit_code == 4);
  CHECK_THAT(few.err, ContainsSubstring("arrays/val_labels.npy: there are only 9 examples"));
  CHECK(program.run({"data", "verify", "job.txtpb"}).exit_code == 4);
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
  CHECK_FALSE(run["epoch_rows"][0].contains("test_accuracy"));
  CHECK(run["best_test_accuracy"].is_null());
  CHECK_THAT(read_text(program / "out/bench.html"), ContainsSubstring("Time to 50.00 % validation accuracy"));
}

}  // namespace arbalest::tests
