// Commands on the model of a run that diverged, failed or was killed: one warning, and a way out that works.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/small_run.h"
#include "tests/support/catch.h"
#include "tests/support/ratings_writer.h"

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;

// The first line of the text that contains `part`; "" if none does.
std::string line_with(const std::string& text, const std::string& part) {
  const std::size_t found = text.find(part);
  if (found == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', found) + 1;
  return text.substr(begin, text.find('\n', found) - begin);
}

// Evaluates, predicts with and exports the model, and returns the warning that all three give. The last finite model of
// an ordinary run is the one of a step before the divergence, and its loss is not finite.
std::string warning_of_all(const Program& program, const std::string& ids, int evaluation_code) {
  std::string warning;
  const std::vector<std::vector<std::string>> commands = {
      {"evaluate", "run"}, {"predict", "run", ids}, {"export", "run", "--output", "model.onnx"}};
  for (const std::vector<std::string>& command : commands) {
    const Completed done = program.run(command);
    INFO(command.front() << ": " << done.err);
    CHECK(done.exit_code == (command.front() == "evaluate" ? evaluation_code : 0));
    const std::string found = line_with(done.err, "the run 'run' diverged");
    CHECK_FALSE(found.empty());
    if (warning.empty()) warning = found;
    CHECK(found == warning);
  }
  return warning;
}

// The steps grow from epoch to epoch until they are too long.
std::string ratings_job(const std::string& scheme) {
  return "model { zoo { matrix_factorization { width: 4 mean: 3.5 } } }\n"
         "data { ratings { directory: \"ratings\" sizes: [200, 120] } }\n"
         "training { max_epochs: 40 }\n"
         "optimizer { sgd {} }\n"
         "learning_rate { base: 20 warm_up { epochs: 20 start_factor: 0.001 } }\n"
         "learners { per_device { fixed: 1 } }\n"
         "devices: \"cpu\"\n"
         "synchronization { " +
         scheme + " {} }\n";
}

}  // namespace

TEST_CASE("ended run: evaluate, predict and export warn of a diverged run alike, and name its other models") {
  const Program program;
  write_ratings(program / "ratings");
  for (const std::string scheme : {"hogwild", "sma"}) {
    INFO(scheme);
    fs::remove_all(program / "run");
    write_text(program / "job.txtpb", ratings_job(scheme));
    const Completed trained = program.run({"train", "job.txtpb", "--data-root", ".", "--output", "run"});
    INFO(trained.err);
    REQUIRE(trained.exit_code == 7);
    const bool has_best = scheme == "sma";
    const std::string warning = warning_of_all(program, "ratings/test_ids.npy", has_best ? 7 : 0);
    CHECK_THAT(warning, ContainsSubstring("warning: ") &&
                            ContainsSubstring("its model.safetensors has finite numbers, but may be of no use") &&
                            ContainsSubstring("train anew with smaller steps"));
    CHECK((warning.find("--checkpoint best") != std::string::npos) == has_best);
    CHECK_THAT(warning, !ContainsSubstring("--checkpoint last"));  // there is no checkpoint
    if (!has_best) continue;
    const Completed best = program.run({"evaluate", "run", "--checkpoint", "best"});
    CHECK(best.exit_code == 0);
    CHECK(line_with(best.err, "diverged").empty());
  }
}

TEST_CASE("ended run: a run that failed before its end says how to go on") {
  const Program program;
  REQUIRE(program.run(kSmall).exit_code == 0);
  nlohmann::json summary = summary_of(program / "run");
  summary["status"] = "failed";
  summary["model_sha256"] = "";  // the run has not come to its last save
  write_text(program / "run/summary.json", summary.dump());
  CHECK_THAT(program.run({"evaluate", "run"}).err,
             ContainsSubstring("the run 'run' failed: its model.safetensors may be older than its last epoch; go on") &&
                 ContainsSubstring("--checkpoint last"));

  fs::remove(program / "run/model.safetensors");
  const Completed none = program.run({"evaluate", "run"});
  CHECK(none.exit_code == 5);
  CHECK_THAT(none.err,
             ContainsSubstring("the run 'run' has no model: it ended without one, with the status 'failed'") &&
                 ContainsSubstring("--resume=auto") && ContainsSubstring("--checkpoint last"));
  CHECK(program.run({"evaluate", "run", "--checkpoint", "last"}).exit_code == 0);

  fs::remove_all(program / "run/checkpoints");
  fs::remove(program / "run/best.safetensors");
  const Completed nothing = program.run({"evaluate", "run"});
  CHECK(nothing.exit_code == 5);
  CHECK_THAT(nothing.err,
             ContainsSubstring("it has no checkpoint, so begin it anew") && !ContainsSubstring("--checkpoint"));
}

TEST_CASE("ended run: a run that was resumed and then killed has the model of the process before") {
  const Program program;
  REQUIRE(program.run(kSmall).exit_code == 0);
  CHECK_THAT(program.run({"evaluate", "run"}).err, !ContainsSubstring("killed"));
  // A process that resumes the run and is killed at once writes this.
  std::ofstream(program / "run/metrics.jsonl", std::ios::app) << "{\"event\":\"resume\"}\n";
  const Completed evaluated = program.run({"evaluate", "run"});
  CHECK(evaluated.exit_code == 0);
  CHECK_THAT(evaluated.err,
             ContainsSubstring("the run 'run' was resumed and then killed: its model.safetensors is that of "
                               "the process before, after ") &&
                 ContainsSubstring("--checkpoint last"));
}

TEST_CASE("ended run: a run that diverged in its first epoch has no model, and says how to get one") {
  const Program program;
  write_ratings(program / "ratings");
  write_text(program / "job.txtpb", ratings_job("hogwild"));
  const Completed trained = program.run({"train", "job.txtpb", "--data-root", ".", "--output", "run", "--set",
                                         "learning_rate.warm_up=default", "--set", "learning_rate.base=100"});
  INFO(trained.err);
  REQUIRE(trained.exit_code == 7);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"evaluate", "run"},
                                             {"predict", "run", "ratings/test_ids.npy"},
                                             {"export", "run", "--output", "model.onnx"}}) {
    const Completed done = program.run(command);
    INFO(command.front() << ": " << done.err);
    CHECK(done.exit_code == 5);
    CHECK_THAT(done.err, ContainsSubstring("the run 'run' has no model: it diverged before an epoch had ended with a "
                                           "finite model; train anew with smaller steps"));
  }
}

TEST_CASE("ended run: jobs without checkpoints are told of none") {
  const Program program;
  write_ratings(program / "ratings");
  const auto train = [&](const std::string& output) {
    return program.start({"train", Program::config("matrix-factorization-hogwild"), "--data-root", ".", "--output",
                          output, "--set", "training.max_epochs=1000000"});
  };
  Subprocess run = train("run");
  REQUIRE(run.wait_for_message("\nepoch "));
  const Completed early = program.run({"evaluate", "run"});
  CHECK(early.exit_code == 5);
  CHECK_THAT(early.err, ContainsSubstring("it is still training") && ContainsSubstring("SIGTERM ends it early") &&
                            !ContainsSubstring("checkpoint"));
  run.send(SIGKILL);
  run.wait();
  const Completed killed = program.run({"evaluate", "run"});
  CHECK(killed.exit_code == 5);
  CHECK_THAT(killed.err, ContainsSubstring("it was killed before it saved one") &&
                             ContainsSubstring("save no checkpoints, so train it anew") &&
                             !ContainsSubstring("--resume") && !ContainsSubstring("--checkpoint"));

  // The advice works.
  Subprocess again = train("again");
  REQUIRE(again.wait_for_message("\nepoch "));
  again.send(SIGTERM);
  CHECK(again.wait().exit_code == 128 + SIGTERM);
  CHECK(program.run({"evaluate", "again"}).exit_code == 0);
  for (const char* name : {"best", "last", "1"}) {
    INFO(name);
    const Completed chosen = program.run({"evaluate", "again", "--checkpoint", name});
    CHECK(chosen.exit_code == 2);
    CHECK_THAT(chosen.err, ContainsSubstring("save no checkpoints and no best model; leave it out"));
  }
}

}  // namespace arbalest::tests
