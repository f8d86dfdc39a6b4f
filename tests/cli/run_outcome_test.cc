// Runs that do not succeed, and the program's messages about them.
#include <csignal>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Nine dense layers with large initial values. The training loss is finite, but after one step at this learning rate
// the model's loss is not.
std::string explosive_job() {
  std::string layers;
  std::string input = "image";
  for (const std::string name : {"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8"}) {
    layers += "layers { name: '" + name + "' input: '" + input + "' dense { units: " + (name == "d8" ? "10" : "64") +
              " weight { initializer { gaussian { stddev: 1 } } } } }\n";
    input = name;
  }
  return "model {\n" + layers + "layers { name: 'loss' input: ['d8', 'label'] softmax_cross_entropy {} } }\n" +
         "data { digits {} } training { batch_size: 20000 max_epochs: 2 } learning_rate { base: 10 }\n" +
         "learners { per_device { fixed: 1 } }";
}

}  // namespace

TEST_CASE("outcome: a model with a non-finite loss is a failure in train, in a dry run and in evaluate") {
  const Program program;
  write_text(program / "job.txtpb", explosive_job());
  const Completed trained = program.run({"train", "job.txtpb", "--output", "run"});
  INFO(trained.err);
  CHECK(trained.exit_code == 7);
  CHECK_THAT(trained.err, ContainsSubstring("after epoch 1 the model's loss on the test set is"));
  const json summary = summary_of(program / "run");
  CHECK(summary["status"] == "diverged");
  CHECK(summary["test_loss"].is_null());

  const Completed evaluated = program.run({"evaluate", "run"});
  CHECK(evaluated.exit_code == 7);
  CHECK(evaluated.out.empty());
  CHECK_THAT(evaluated.err, ContainsSubstring("its loss on the test set is") && ContainsSubstring("had diverged"));

  const Completed dry = program.run({"train", "job.txtpb", "--dry-run"});
  CHECK(dry.exit_code == 7);
  CHECK(dry.out.empty());
}

TEST_CASE("outcome: evaluate warns if the accuracy differs from the run's") {
  const Program program;
  REQUIRE(program.run(kSmall).exit_code == 0);
  const Completed same = program.run({"evaluate", "run"});
  CHECK(same.err.empty());

  json summary = summary_of(program / "run");
  summary["test_accuracy"] = 0.125;
  write_text(program / "run/summary.json", summary.dump());
  const Completed changed = program.run({"evaluate", "run"});
  CHECK(changed.exit_code == 0);
  CHECK(changed.out == same.out);
  CHECK_THAT(changed.err, ContainsSubstring("now and was 0.125 when 'run' was saved"));

  fs::remove(program / "run/summary.json");
  fs::create_directory(program / "run/summary.json");
  const Completed damaged = program.run({"evaluate", "run"});
  CHECK(damaged.exit_code == 4);
  CHECK_THAT(damaged.err, ContainsSubstring("'run/summary.json' is damaged"));
}

TEST_CASE("outcome: evaluate says why a run has no model") {
  const Program program;
  Subprocess run = program.start(
      {"train", Program::config("logistic-digits"), "--set", "training.max_epochs=100000", "--output", "run"});
  REQUIRE(run.wait_for_message("train loss"));  // an epoch has ended, so there is a best model
  const Completed early = program.run({"evaluate", "run"});
  CHECK(early.exit_code == 5);
  CHECK_THAT(early.err, ContainsSubstring("the run 'run' has no model: it is still training") &&
                            ContainsSubstring("--checkpoint last or --checkpoint best") &&
                            ContainsSubstring("SIGUSR1"));
  // The advice works.
  run.send(SIGUSR1);
  REQUIRE(run.wait_for_message("checkpoint of epoch"));
  const Completed last = program.run({"evaluate", "run", "--checkpoint", "last"});
  CHECK(last.exit_code == 0);
  CHECK_THAT(program.run({"runs", "."}).out, ContainsSubstring("running"));
  run.send(SIGKILL);
  run.wait();
  // Not while it runs: a better model may replace the best one between the reading of its hash and of its file.
  CHECK(program.run({"evaluate", "run", "--checkpoint", "best"}).exit_code == 0);
  const Completed late = program.run({"evaluate", "run"});
  CHECK(late.exit_code == 5);
  CHECK_THAT(late.err, ContainsSubstring("it was killed before it saved one; go on with it"));
  CHECK_THAT(program.run({"runs", "."}).out, ContainsSubstring("killed"));
}

TEST_CASE("outcome: a run that fails leaves no trace, so the same command can be repeated") {
  const Program program;
  const std::vector<std::string> command = {
      "train", Program::config("lenet-mnist"), "--data-root", "nowhere", "--trace", "trace.json"};
  CHECK(program.run(command).exit_code == 4);
  const Completed again = program.run(command);
  CHECK(again.exit_code == 4);
  CHECK_THAT(again.err, !ContainsSubstring("trace.json"));
}

TEST_CASE("outcome: a diverged run names the settings that changed the length of its steps") {
  const Program program;
  write_text(program / "job.txtpb", explosive_job());
  const Completed result = program.run(
      {"train", "job.txtpb", "--output", "run", "--set", "learning_rate.base=20", "--set", "training.seed=3"});
  CHECK(result.exit_code == 7);
  CHECK_THAT(result.err, ContainsSubstring("this run has --set learning_rate.base=20") &&
                             !ContainsSubstring("this run has --set training.seed"));
}

TEST_CASE("outcome: a second Ctrl-C says that the model was not saved") {
  const Program program;
  // One round of one mini-batch takes long enough for two signals.
  Subprocess run = program.start({"train", Program::config("lenet-digits"), "--set", "training.batch_size=20000",
                                  "--set", "learners.per_device.fixed=1", "--output", "run"});
  REQUIRE(run.wait_for_message("preparing data"));
  run.send(SIGINT);
  run.send(SIGTERM);
  const Completed result = run.wait();
  // Either signal may come first.
  const bool at_once = result.exit_code == 128 + SIGTERM || result.exit_code == 128 + SIGINT;
  CHECK(at_once);
  CHECK_THAT(
      result.err,
      ContainsSubstring(
          "arbalest: stopped at once; what was not saved yet is lost, and any earlier checkpoints are intact\n"));
  CHECK_FALSE(fs::exists(program / "run/model.safetensors"));
}

TEST_CASE("outcome: of two simultaneous runs into a directory, one is refused and the other is complete") {
  const Program program;
  Subprocess one = program.start(kSmall);
  Subprocess two = program.start(kSmall);
  const Completed first = one.wait();
  const Completed second = two.wait();
  INFO(first.err << second.err);
  REQUIRE(first.exit_code + second.exit_code == 2);
  const Completed& loser = first.exit_code == 2 ? first : second;
  CHECK(loser.out.empty());
  // The winner may not have its lock yet.
  CHECK_THAT(loser.err,
             ContainsSubstring("is training in 'run' at present") || ContainsSubstring("'run' holds a run already"));
  CHECK(program.run({"evaluate", "run"}).exit_code == 0);
}

TEST_CASE("outcome: a run that never started leaves no runs/") {
  const Program program;
  CHECK(program.run({"train", Program::config("lenet-mnist"), "--data-root", "nowhere"}).exit_code == 4);
  CHECK(fs::is_empty(program.directory()));
}

TEST_CASE("outcome: Ctrl-C is answered at once, and the last message names the signal and the epochs") {
  const Program program;
  Subprocess run = program.start(
      {"train", Program::config("lenet-digits"), "--set", "training.max_epochs=100000", "--output", "run"});
  REQUIRE(run.wait_for_message("preparing data"));
  REQUIRE(run.wait_for_message("\nepoch "));
  run.send(SIGINT);
  REQUIRE(run.wait_for_message("stopping and saving; Ctrl-C again exits without saving\n"));
  const Completed result = run.wait();
  CHECK(result.exit_code == 128 + SIGINT);
  CHECK_THAT(result.err, ContainsSubstring("arbalest: stopped by SIGINT after "));
  CHECK(summary_of(program / "run")["examples"] > 0);
}

}  // namespace arbalest::tests
