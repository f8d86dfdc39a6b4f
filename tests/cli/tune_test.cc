// arbalest tune.
#include <algorithm>
#include <csignal>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

namespace {

std::vector<std::string> tune(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"tune", Program::config("logistic-digits")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("tune: measures every number of a sweep, chooses one, and saves curve and chart") {
  const Program program;
  const Completed result =
      program.run(tune({"--set", "learners.per_device.auto={max: 2}", "--sweep", "--output", "tuning", "--json"}));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto tuned = nlohmann::json::parse(result.out);
  CHECK(tuned["status"] == "completed");
  CHECK(nlohmann::json::parse(read_text(program / "tuning/tune.json")) == tuned);
  REQUIRE(tuned["chosen"].size() == 1);
  std::vector<int> counts;
  double best = 0.0;
  double chosen = 0.0;
  for (const auto& point : tuned["sweep"]) {
    counts.push_back(point["learners"]);
    CHECK(point["images_per_second"] > 0.0);
    CHECK(point["learner_bytes"] > 0);
    best = std::max(best, point["images_per_second"].get<double>());
    if (point["learners"] == tuned["chosen"][0]) chosen = point["images_per_second"];
  }
  CHECK(std::ranges::count(counts, tuned["chosen"][0].get<int>()) == 1);
  CHECK(std::ranges::is_sorted(counts));
  CHECK(counts.back() <= 2);
  CHECK(tuned["regret"].get<double>() == Approx(1.0 - chosen / best));
  // What the machine lost is not asserted: others may use it while the test runs. The answer must be true to it.
  CHECK(tuned["machine"]["is_known"] == true);
  CHECK(tuned["may_be_remembered"] == tuned["machine"]["is_quiet"]);
  if (tuned["machine"]["is_quiet"]) CHECK(tuned["gain"]["by"] == "examples_per_second");
  if (!tuned["machine"]["is_quiet"] && !tuned["gain"].is_null()) CHECK(tuned["gain"]["by"] == "processor_time");
  CHECK(tuned["one_learner"]["learners"] == 1);
  if (tuned["machine"]["is_quiet"]) CHECK(tuned["regret"].get<double>() <= 0.03);
  CHECK_FALSE(tuned["points"].empty());
  CHECK_FALSE(tuned["reason"].get<std::string>().empty());
  CHECK_THAT(read_text(program / "tuning/tune.svg"),
             ContainsSubstring("<svg") && ContainsSubstring("class=\"whisker") && ContainsSubstring("</svg>"));
  CHECK_FALSE(std::filesystem::exists(program / "tuning/model.safetensors"));

  const Completed again = program.run(tune({"--output", "tuning"}));
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, ContainsSubstring("tune.json' is there already"));
  CHECK(nlohmann::json::parse(read_text(program / "tuning/tune.json")) == tuned);
}

TEST_CASE("tune: --objective goodput adds efficiency and goodput, also for a job with a fixed number") {
  const Program program;
  const std::vector<std::string> fixed = {"--set", "learners.per_device.fixed=1", "--set", "training.batch_size=2000"};
  const auto objective_of = [&](std::vector<std::string> more) {
    more.insert(more.end(), fixed.begin(), fixed.end());
    more.insert(more.end(), {"--no-cache", "--json"});
    const Completed result = program.run(tune(more));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    const auto tuned = nlohmann::json::parse(result.out);
    for (const auto& point : tuned["points"]) CHECK(point["efficiency"].is_null() == tuned["noise_scale"].is_null());
    return tuned["objective"].get<std::string>();
  };
  CHECK(objective_of({}) == "throughput");
  CHECK(objective_of({"--objective", "goodput"}) == "goodput");
  const std::string by_goodput = "learners.per_device.auto={max: 2 objective: GOODPUT}";
  const Completed text = program.run(tune({"--set", by_goodput, "--no-cache"}));
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.out, ContainsSubstring("efficiency") && ContainsSubstring("goodput"));
  const Completed overruled = program.run(tune({"--set", by_goodput, "--no-cache", "--objective", "throughput"}));
  CHECK(overruled.exit_code == 0);
  CHECK_THAT(overruled.out, !ContainsSubstring("efficiency"));
}

TEST_CASE("tune: without --output the result is saved in a new directory below runs/") {
  const Program program;
  const std::vector<std::string> arguments = tune({"--set", "learners.per_device.auto={max: 1}", "--json"});
  std::vector<std::string> kept;
  for (int i = 0; i < 2; ++i) {
    const Completed result = program.run(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    for (const auto& entry : std::filesystem::directory_iterator(program / "runs")) {
      const std::string name = entry.path().filename().string();
      if (std::ranges::find(kept, name) != kept.end()) continue;
      kept.push_back(name);
      CHECK(name.starts_with("tune-logistic-digits-20"));
      CHECK(read_text(entry.path() / "tune.json") == result.out);
      CHECK_THAT(read_text(entry.path() / "tune.svg"), ContainsSubstring("</svg>"));
      CHECK_THAT(result.err, ContainsSubstring("kept in 'runs/" + name + "': tune.json, tune.svg"));
    }
  }
  CHECK(kept.size() == 2);

  write_text(program / "absent.txtpb",
             "name: 'absent' model { zoo { logistic_regression {} } } data { mnist {} } training { max_epochs: 1 }\n"
             "learning_rate { base: 0.01 }");
  CHECK(program.run({"tune", "absent.txtpb", "--data-root", "nowhere"}).exit_code == 4);
  for (const auto& entry : std::filesystem::directory_iterator(program / "runs")) {
    CHECK_FALSE(entry.path().filename().string().starts_with("tune-absent"));
  }
}

TEST_CASE("tune: the result is printed even if it cannot be saved") {
  const Program program;
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"--sweep"}, {"--objective", "time-to-accuracy", "--target", "0.1"}}) {
    std::vector<std::string> arguments = {
        "--set", "learners.per_device.auto={max: 1}", "--set", "training.max_epochs=1", "--output", "/proc"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Completed result = program.run(tune(arguments));
    INFO(result.err);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, ContainsSubstring("cannot write '/proc/tune.json"));
    CHECK_THAT(result.out, ContainsSubstring("examples/s") && ContainsSubstring("chosen"));
  }
}

TEST_CASE("tune: the result is cached, and a run with auto begins there") {
  Program program;
  const auto home = program / "home";
  program.set_environment("HOME=" + home.string());
  const Completed untouched = program.run(tune({"--set", "learners.per_device.auto={max: 1}", "--no-cache"}));
  CHECK(untouched.exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(home));

  const Completed tuned = program.run(tune({"--set", "learners.per_device.auto={max: 1}"}));
  INFO(tuned.err);
  REQUIRE(tuned.exit_code == 0);
  const auto directory = home / ".cache/arbalest/learners";
  REQUIRE(std::filesystem::exists(directory));
  const std::filesystem::path file = *std::filesystem::directory_iterator(directory);
  CHECK_THAT(tuned.err, ContainsSubstring("cached in '" + file.string() + "'"));

  int runs = 0;
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"train", Program::config("logistic-digits"), "--output",
                                          "run" + std::to_string(++runs)};
    for (const char* setting : {"training.max_epochs=1", "learners.per_device.auto={max: 2}"}) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Completed result = program.run(arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    return result.err;
  };
  const std::string from_there =
      "begins where `arbalest tune` has ended, or at the nearest number that the job allows (" + file.string() + ")";
  CHECK_THAT(train({}), ContainsSubstring(from_there));
  CHECK_THAT(train({"--no-cache"}), !ContainsSubstring("arbalest tune"));
  CHECK_THAT(train({"--set", "training.batch_size=16"}), !ContainsSubstring("arbalest tune"));

  const std::string whole = read_text(file);
  write_text(file, whole.substr(0, whole.size() / 2));
  CHECK_THAT(train({}), ContainsSubstring("warning: '" + file.string() + "' should say where") &&
                            ContainsSubstring("it is not JSON: it is ignored and has been removed") &&
                            !ContainsSubstring("has ended"));
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK_THAT(train({}), !ContainsSubstring("arbalest tune"));
  REQUIRE(program.run(tune({"--set", "learners.per_device.auto={max: 1}"})).exit_code == 0);
  CHECK(nlohmann::json::parse(read_text(file))["key"] == nlohmann::json::parse(whole)["key"]);

  program.set_environment("XDG_CACHE_HOME=" + (program / "cache").string());
  CHECK_THAT(train({}), !ContainsSubstring("arbalest tune"));
  std::filesystem::create_directories(program / "cache");
  write_text(program / "cache/arbalest", "in the way");
  const Completed blocked = program.run(tune({"--set", "learners.per_device.auto={max: 1}"}));
  CHECK(blocked.exit_code == 0);
  CHECK_THAT(blocked.out, ContainsSubstring("chosen"));
  CHECK_THAT(blocked.err, ContainsSubstring("warning: the result is not cached for runs with 'auto {}': cannot write"));
}

TEST_CASE("tune: for time to accuracy, each number trains like a run with this number") {
  Program program;
  program.set_environment("HOME=" + (program / "home").string());
  const std::vector<std::string> short_job = {"--set", "training.max_epochs=2", "--set",
                                              "learners.per_device.auto={min: 2 max: 4}"};
  const auto study = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"--objective", "time-to-accuracy", "--json"};
    arguments.insert(arguments.end(), short_job.begin(), short_job.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return program.run(tune(arguments));
  };
  const Completed easy = study({"--target", "0.5", "--output", "tuning"});
  INFO(easy.err);
  REQUIRE(easy.exit_code == 0);
  const auto tuned = nlohmann::json::parse(easy.out);
  CHECK(nlohmann::json::parse(read_text(program / "tuning/tune.json")) == tuned);
  CHECK(tuned["status"] == "completed");
  CHECK(tuned["target_accuracy"] == 0.5);
  CHECK_THAT(read_text(program / "tuning/tune.svg"), ContainsSubstring("seconds to 50.00 % test accuracy"));
  REQUIRE_FALSE(tuned["points"].empty());
  bool chosen_is_there = false;
  for (const auto& point : tuned["points"]) {
    chosen_is_there = chosen_is_there || point["learners"] == tuned["chosen"][0];
    CHECK(point["epochs_to_accuracy"] == 1);
    CHECK(point["time_to_accuracy_seconds"] > 0.0);
    CHECK(point["train_seconds"] > point["time_to_accuracy_seconds"]);  // training continues to the last epoch
    CHECK(point["learner_bytes"] > 0);
    const std::string learners = std::to_string(point["learners"].get<int>());
    const Completed run = program.run({"train", Program::config("logistic-digits"), "--set", "training.max_epochs=2",
                                       "--set", "learners.per_device.fixed=" + learners, "--output", "run" + learners});
    REQUIRE(run.exit_code == 0);
    CHECK(summary_of(program / ("run" + learners))["test_accuracy"] == point["test_accuracy"]);
  }
  CHECK(chosen_is_there);
  CHECK_FALSE(std::filesystem::exists(program / "home"));  // this study says nothing about throughput, so nothing is
                                                           // remembered

  const auto seeds = nlohmann::json::parse(study({"--target", "0.5", "--seeds", "1,2"}).out);
  CHECK(seeds["seeds"] == std::vector<int>{1, 2});
  int different = 0;  // two models of one learner count may have the same accuracy
  for (const auto& point : seeds["points"]) {
    REQUIRE(point["runs"].size() == 2);
    if (point["runs"][0]["test_accuracy"] != point["runs"][1]["test_accuracy"]) ++different;
  }
  CHECK(different > 0);

  const Completed hard = study({"--target", "1"});
  CHECK(hard.exit_code == 9);
  CHECK(nlohmann::json::parse(hard.out)["chosen"].is_null());
  CHECK_THAT(hard.out, ContainsSubstring("no number of learners reached 100.00 % test accuracy within 2 epochs"));

  for (const auto& [more, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "needs an accuracy: --target 0.99"},
           {{"--target", "0.5", "--seeds", "1,1"}, "1 is given twice"},
           {{"--target", "0"}, "--target 0: an accuracy must be above 0"},
           {{"--target", "99"}, "--target 99: an accuracy must be above 0 and at most 1; did you mean 0.99?"},
           {{"--target", "nan"}, "--target nan: an accuracy must be above 0"}}) {
    const Completed wrong = study(more);
    CHECK(wrong.exit_code == 2);
    CHECK_THAT(wrong.err, ContainsSubstring(message));
  }
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--target", "0.9"}, {"--objective", "speed"}}) {
    CHECK(program.run(tune(wrong)).exit_code == 2);
  }
  const Completed numbers = program.run(
      {"tune", Program::config("matrix-factorization-ratings"), "--objective", "time-to-accuracy", "--target", "0.9"});
  CHECK(numbers.exit_code == 2);
  CHECK_THAT(numbers.err, ContainsSubstring("has no accuracy"));
}

TEST_CASE("tune: Ctrl-C keeps finished trainings") {
  const Program program;
  Subprocess running =
      program.start(tune({"--objective", "time-to-accuracy", "--target", "0.5", "--set", "training.max_epochs=20",
                          "--set", "learners.per_device.auto={max: 2}", "--output", "tuning"}));
  REQUIRE(running.wait_for_message("2 learners: epoch 1/20"));
  running.send(SIGINT);
  const Completed done = running.wait();
  INFO(done.err);
  CHECK(done.exit_code == 128 + SIGINT);
  CHECK_THAT(done.out, ContainsSubstring("stopped before all trainings had ended: 1 learner on each device reached"));
  const auto tuned = nlohmann::json::parse(read_text(program / "tuning/tune.json"));
  CHECK(tuned["status"] == "stopped");
  CHECK(tuned["points"].size() == 1);
  CHECK(tuned["chosen"] == std::vector<int>{1});
}

TEST_CASE("tune: Ctrl-C in the search keeps nothing, and in the sweep keeps the search's result") {
  Program program;
  const auto home = program / "home";
  program.set_environment("HOME=" + home.string());
  Subprocess searching =
      program.start({"tune", Program::config("lenet-digits"), "--set", "learners.per_device.auto={max: 4}"});
  REQUIRE(searching.wait_for_message(" examples/s"));  // one number of learners is measured, others are not
  searching.send(SIGINT);
  Completed done = searching.wait();
  INFO(done.err);
  CHECK(done.exit_code == 128 + SIGINT);
  CHECK_THAT(done.err, ContainsSubstring("stopped before a number was found; nothing is kept"));
  CHECK(done.out.empty());
  CHECK_FALSE(std::filesystem::exists(program / "runs"));
  CHECK_FALSE(std::filesystem::exists(home));

  Subprocess sweeping =
      program.start(tune({"--set", "learners.per_device.auto={max: 2}", "--sweep", "--output", "tuning"}));
  REQUIRE(sweeping.wait_for_message("sweep: turn 1 is over"));
  sweeping.send(SIGINT);
  done = sweeping.wait();
  INFO(done.err);
  CHECK(done.exit_code == 128 + SIGINT);
  CHECK_THAT(done.out, ContainsSubstring("stopped before the sweep had ended"));
  const auto tuned = nlohmann::json::parse(read_text(program / "tuning/tune.json"));
  CHECK(tuned["status"] == "stopped");
  CHECK(tuned["chosen"].size() == 1);
  CHECK_FALSE(tuned["points"].empty());
  CHECK(tuned["sweep"].empty());
  CHECK(tuned["regret"].is_null());
  // The search's result is cached, unless the machine was busy.
  CHECK(std::filesystem::exists(home / ".cache/arbalest/learners") == tuned["may_be_remembered"].get<bool>());
}

TEST_CASE("tune: a job's fixed number is no bound, and invalid bounds are refused") {
  const Program program;
  const Completed result = program.run(tune({"--set", "learners.per_device.fixed=1"}));
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("examples/s") && ContainsSubstring("chosen"));
  const Completed wrong = program.run(tune({"--set", "learners.per_device.auto={min: 3 max: 2}"}));
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, ContainsSubstring("min must not be above max"));
}

TEST_CASE("tune: a job that switches to fewer learners can be tuned") {
  const Program program;
  const std::vector<std::string> setting = {"--set", "learners.per_device.fixed=2", "--set",
                                            "synchronization={s_sgd {} switch { at_epoch: 1 sma {} learners: 1 }}"};
  const Completed result = program.run(tune(setting));
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("chosen"));
  CHECK_THAT(result.err, ContainsSubstring("tune ignores the field 'learners' of the job's switches"));
}

TEST_CASE("learners that the job cannot have are refused before the first step") {
  const Program program;
  const auto with = [&](const std::string& model, const std::string& count) {
    write_text(program / "job.txtpb", "name: 'job' " + model +
                                          " data { digits {} } training { batch_size: 32 max_epochs: 1 }\n"
                                          "learning_rate { base: 0.01 }\n"
                                          "learners { per_device { " +
                                          count + " } }\n" + "devices: 'cpu'\n");
  };
  for (const auto& [count, message] : std::vector<std::pair<std::string, std::string>>{
           {"auto { min: 5 max: 4 }", "min must not be above max: 5 is above 4"},
           {"auto { min: 0 }", "min must be in [1, 1024], not 0"},
           {"auto { max: -3 }", "max must be in [1, 1024], not -3"},
           {"auto { min: 626 }",
            "a round of 626 learners with period 1 needs 626 mini-batches, but an epoch has 625"}}) {
    CAPTURE(count);
    with("model { zoo { lenet {} } }", count);
    for (const char* command : {"train", "tune", "validate"}) {
      const Completed result = program.run({command, "job.txtpb"});
      CHECK(result.exit_code == 3);
      CHECK_THAT(result.err, ContainsSubstring("job.txtpb:3:") && ContainsSubstring(message));
    }
  }
  // The limit is a terabyte.
  with(
      "model { layers { name: 'wide' input: 'image' dense { units: 100000 } } layers { name: 'logits' input: 'wide' "
      "dense { units: 10 } } layers { name: 'loss' input: ['logits', 'label'] softmax_cross_entropy {} } }",
      "fixed: 600");
  // Their checkpoints would not fit on the disk, which is found out even earlier.
  const Completed result = program.run({"train", "job.txtpb", "--output", "run", "--set", "checkpoint.keep_last=0"});
  CHECK(result.exit_code == 6);
  CHECK_THAT(result.err, ContainsSubstring("600 learners would take ") && ContainsSubstring(" of host memory (") &&
                             ContainsSubstring(" are available; "));
  CHECK_FALSE(std::filesystem::exists(program / "run"));
}

}  // namespace arbalest::tests
