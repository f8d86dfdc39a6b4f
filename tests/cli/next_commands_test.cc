// The commands that the program prints when a run ends. The tests run them as they are printed.
#include <csignal>
#include <string>
#include <vector>

#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"
#include "tests/support/image_writer.h"

namespace {

using arbalest::tests::Completed;
using arbalest::tests::Program;
using arbalest::tests::read_text;
using arbalest::tests::Subprocess;
using arbalest::tests::summary_of;
using arbalest::tests::write_text;

// Names that a shell would read as other words.
constexpr const char* kJob = "a job's.txtpb";
constexpr const char* kRun = "runs/it's $HOME";

std::string job_text(const std::string& learning_rate, const std::string& training = "max_epochs: 1") {
  return "model { zoo { logistic_regression {} } } data { digits {} } learners { per_device { fixed: 1 } }\n"
         "training { " +
         training + " }\nlearning_rate { " + learning_rate + " }\n";
}

// The command behind `label` at the end of what the program has printed; "" if there is none.
std::string command_after(const std::string& label, const Completed& done) {
  const std::string begin = "\n" + label;
  const std::size_t at = done.err.rfind(begin);
  if (at == std::string::npos) return "";
  const std::size_t first = done.err.find_first_not_of(' ', at + begin.size());
  return done.err.substr(first, done.err.find('\n', first) - first);
}

Completed run_command(const Program& program, const std::string& command) {
  CAPTURE(command);
  REQUIRE_FALSE(command.empty());
  return Subprocess({"/bin/sh", "-c", command}, program.environment(), program.directory()).wait();
}

std::vector<std::string> train(const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"train", kJob, "--output", kRun};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("next: the command after a finished run trains it on, whatever its schedule is") {
  for (const std::string schedule :
       {"fixed {}", "step { epochs: 1 factor: 0.9 }", "multistep { drop { epoch: 0.5 factor: 0.9 } }",
        "inverse { gamma: 0.1 }", "exponential { factor: 0.9 }", "polynomial {}", "cosine {}", "cyclic { epochs: 2 }",
        "one_cycle {}", "plateau {}", "cosine { epochs: 1 }", "cosine {} warm_up { epochs: 0.3 }"}) {
    CAPTURE(schedule);
    const Program program;
    write_text(program / kJob, job_text("base: 0.01 " + schedule));
    const Completed first = program.run(train({"--set", "training.seed=3"}));
    REQUIRE(first.exit_code == 0);
    const std::string command = command_after("train on:", first);
    const Completed second = run_command(program, command);
    INFO(second.err);
    CHECK(second.exit_code == 0);
    const nlohmann::json summary = summary_of(program / kRun);
    CHECK(summary["epochs"] == 11);
    CHECK(summary["seed"] == 3);
    // The same command once more has nothing to do, and prints one that has.
    const Completed again = run_command(program, command);
    CHECK(again.exit_code == 0);
    CHECK_THAT(again.out,
               ContainsSubstring("nothing is left to train; train more epochs by --set training.max_epochs=21"));
    CHECK_THAT(command_after("train on:", again), ContainsSubstring("--set training.max_epochs=21"));
    CHECK(read_text(program / kRun / "metrics.jsonl").find("\"learning_rate\":0.0,") == std::string::npos);
  }
}

TEST_CASE("next: the command after a run whose restarts were named by --set trains it on") {
  const Program program;
  write_text(program / kJob, job_text("base: 0.01 cosine {}", "max_epochs: 2"));
  const Completed first = program.run(train({"--set", "learning_rate.restart={epoch: 1}"}));
  REQUIRE(first.exit_code == 0);
  const Completed second = run_command(program, command_after("train on:", first));
  INFO(second.err);
  CHECK(second.exit_code == 0);
  CHECK(summary_of(program / kRun)["epochs"] == 12);
  CHECK_THAT(read_text(program / kRun / "job.txtpb"), ContainsSubstring("epochs: 10"));
}

TEST_CASE("next: a stopped run is resumed, evaluated and asked by the commands that it prints") {
  const Program program;
  write_text(program / kJob, job_text("base: 0.01 cosine {}", "max_epochs: 100000"));
  for (const int signal : {SIGINT, SIGTERM}) {
    Subprocess run = program.start(train({"--resume=auto"}));
    REQUIRE(run.wait_for_message("\nepoch "));
    run.send(signal);
    const Completed stopped = run.wait();
    CHECK(stopped.exit_code == 128 + signal);
    const std::string command = command_after("train on:", stopped);
    CHECK_THAT(command, ContainsSubstring("train 'a job'\\''s.txtpb'") && ContainsSubstring("--resume=auto"));
    Subprocess resumed({"/bin/sh", "-c", "exec " + command}, program.environment(), program.directory());
    CHECK(resumed.wait_for_message("resumes"));
    resumed.send(SIGTERM);
    CHECK(resumed.wait().exit_code == 128 + SIGTERM);
    CHECK_THAT(stopped.out, !ContainsSubstring("next"));
    const Completed evaluated = run_command(program, command_after("evaluate:", stopped));
    CHECK(evaluated.exit_code == 0);
    CHECK_THAT(evaluated.out, ContainsSubstring("accuracy"));
  }
}

TEST_CASE("next: a run that reached its target, or another limit, trains on without it") {
  struct Limit {
    std::string fields;
    std::string settings;
  };
  for (const Limit& limit : {Limit{"max_epochs: 5 target_accuracy: 0.1", "--set training.target_accuracy=default"},
                             Limit{"max_epochs: 1 target_accuracy: 0.1",
                                   "--set training.target_accuracy=default --set training.max_epochs=11"},
                             Limit{"max_epochs: 9 patience_epochs: 1 min_improvement: 1",
                                   "--set training.patience_epochs=default --set training.min_improvement=default"},
                             Limit{"max_epochs: 5 max_minutes: 1e-9", "--set training.max_minutes=default"}}) {
    CAPTURE(limit.fields);
    const Program program;
    write_text(program / kJob, job_text("base: 0.01 one_cycle {}", limit.fields));
    const Completed first = program.run(train());
    REQUIRE(first.exit_code == 0);
    const int epochs = summary_of(program / kRun)["epochs"];
    const std::string command = command_after("train on:", first);
    CHECK_THAT(command, ContainsSubstring(limit.settings));
    const Completed second = run_command(program, command);
    INFO(second.err);
    CHECK(second.exit_code == 0);
    CHECK(summary_of(program / kRun)["epochs"].get<int>() > epochs);
  }
}

TEST_CASE("next: a run that diverged goes back or begins anew") {
  const Program program;
  write_text(program / kJob, job_text("base: 1000"));
  const Completed first = program.run(train({"--set", "model.zoo.lenet={}"}));
  REQUIRE(first.exit_code == 7);
  CHECK(command_after("train on:", first).empty());
  const std::string anew = command_after("train anew:", first);
  CHECK_THAT(anew, ContainsSubstring("--set model.zoo.lenet='{}'") || ContainsSubstring("'model.zoo.lenet={}'"));
  CHECK_THAT(anew, ContainsSubstring("--set learning_rate.base=100") && !ContainsSubstring("--output"));
  CHECK(run_command(program, anew + " --set learning_rate.base=0.01").exit_code == 0);

  // With a checkpoint after each mini-batch there is one to go back to.
  const Completed late = program.run({"train", kJob, "--output", "late", "--set", "model.zoo.lenet={}", "--set",
                                      "checkpoint.every_batches=1", "--set", "training.max_epochs=2", "--set",
                                      "learning_rate.warm_up={epochs: 1 start_factor: 1e-6}"});
  REQUIRE(late.exit_code == 7);
  const std::string back = command_after("train on:", late);
  CHECK_THAT(back, ContainsSubstring("--set training.on_divergence=ROLL_BACK --output late --resume=auto"));
  CHECK_THAT(run_command(program, back).err, ContainsSubstring("resumes"));
}

TEST_CASE("next: pictures are asked about by the command with IMAGE replaced, quiet runs print no command") {
  const Program program;
  write_text(program / kJob, job_text("base: 0.01"));
  const Completed done = program.run(train());
  REQUIRE(done.exit_code == 0);
  std::string command = command_after("predict:", done);
  const std::size_t at = command.find("IMAGE");
  REQUIRE(at != std::string::npos);
  write_text(program / "picture.png", arbalest::tests::png(arbalest::tests::gradient(28, 28, 1)));
  const Completed answer = run_command(program, command.replace(at, 5, "picture.png"));
  CHECK(answer.exit_code == 0);
  CHECK_THAT(answer.out, ContainsSubstring("picture.png"));
  const Completed quiet = program.run({"train", kJob, "--quiet", "--output", "quiet"});
  CHECK(quiet.exit_code == 0);
  CHECK(quiet.err.empty());
}

TEST_CASE("next: a run without checkpoints cannot go on, and none of its commands says so") {
  const Program program;
  write_text(program / kJob, job_text("base: 0.01") + "checkpoint { keep_last: 0 }\n");
  const Completed done = program.run(train());
  REQUIRE(done.exit_code == 0);
  CHECK(command_after("train on:", done).empty());
  CHECK(run_command(program, command_after("evaluate:", done)).exit_code == 0);
}
