// Runs that are killed, stopped and resumed, as a user does it.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"

namespace {

namespace fs = std::filesystem;
using arbalest::tests::Completed;
using arbalest::tests::Program;
using arbalest::tests::read_text;
using arbalest::tests::Subprocess;
using arbalest::tests::summary_of;
using arbalest::tests::write_text;

// Two learners on a linear model; a checkpoint after about every 100 of 625 mini-batches of an epoch.
std::vector<std::string> job_of(const std::string& epochs, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {
      "train", Program::config("logistic-digits"), "--set", "training.max_epochs=" + epochs,
      "--set", "training.target_accuracy=default", "--set", "learners.per_device.fixed=2",
      "--set", "checkpoint.every_batches=100"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const std::vector<std::string> kHere = {"--output", "run", "--resume=auto"};

std::vector<fs::path> checkpoints_in(const fs::path& run) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

}  // namespace

TEST_CASE("resume: a killed run goes on from its newest checkpoint to the bytes of an undisturbed one") {
  const Program program;
  REQUIRE(program.run(job_of("12", {"--output", "whole"})).exit_code == 0);
  Subprocess run = program.start(job_of("12", kHere));
  REQUIRE(run.wait_for_message("checkpoint of epoch"));
  run.send(SIGKILL);
  run.wait();
  const Completed resumed = program.run(job_of("12", kHere));
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.err, ContainsSubstring("resumes") && ContainsSubstring("run/checkpoints/0000"));
  CHECK(summary_of(program / "run")["model_sha256"] == summary_of(program / "whole")["model_sha256"]);
  CHECK(summary_of(program / "run")["best_test_accuracy"] == summary_of(program / "whole")["best_test_accuracy"]);

  const Completed again = program.run(job_of("12", kHere));
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.out, ContainsSubstring("the run in 'run' is complete (completed): nothing is left to train"));
}

TEST_CASE("resume: fewer epochs than are trained end the run as it is, and the run says so") {
  const Program program;
  REQUIRE(program.run(job_of("3", kHere)).exit_code == 0);
  const auto trained = summary_of(program / "run");
  const std::vector<fs::path> checkpoints = checkpoints_in(program / "run");
  const Completed complete = program.run(job_of("2", kHere));
  CHECK(complete.exit_code == 0);
  CHECK_THAT(complete.out, ContainsSubstring("it has trained 3 epochs, and training.max_epochs is 2: nothing is left"));
  CHECK(summary_of(program / "run") == trained);

  // A killed run has no summary; it is evaluated and saved as it is.
  fs::remove(program / "run/summary.json");
  fs::remove(program / "run/model.safetensors");
  const Completed killed = program.run(job_of("2", kHere));
  CHECK(killed.exit_code == 0);
  CHECK_THAT(killed.err, ContainsSubstring("is at 3 epochs, beyond training.max_epochs: 2, so nothing was trained"));
  const auto summary = summary_of(program / "run");
  CHECK(summary["model_sha256"] == trained["model_sha256"]);
  CHECK(summary["epochs"] == 3);
  CHECK_THAT(summary["message"].get<std::string>(), ContainsSubstring("beyond training.max_epochs"));
  CHECK(checkpoints_in(program / "run") == checkpoints);
  const Completed more = program.run(job_of("4", kHere));
  CHECK(more.exit_code == 0);
  CHECK(summary_of(program / "run")["epochs"] == 4);
  CHECK(summary_of(program / "run")["message"] == "");
}

TEST_CASE("resume: SIGTERM saves a checkpoint and ends, SIGUSR1 saves one and the run goes on") {
  const Program program;
  const std::vector<std::string> rarely = {"--output", "run", "--resume=auto", "--set",
                                           "checkpoint.every_epochs=100000"};
  Subprocess run = program.start(job_of("100000", rarely));
  REQUIRE(run.wait_for_message("\nepoch "));
  run.send(SIGUSR1);
  REQUIRE(run.wait_for_message("checkpoint of epoch"));
  CHECK(run.is_running());
  const std::size_t before = checkpoints_in(program / "run").size();
  CHECK(before >= 1);
  run.send(SIGTERM);
  const Completed stopped = run.wait();
  CHECK(stopped.exit_code == 128 + SIGTERM);
  CHECK(checkpoints_in(program / "run").size() == before + 1);
  // max_epochs may change; here the run ends with the epoch under way.
  const auto summary = summary_of(program / "run");
  const std::string next = std::to_string(summary["epochs"].get<int>() + 1);
  const Completed resumed = program.run(job_of(next, rarely));
  CHECK(resumed.exit_code == 0);
  CHECK(summary_of(program / "run")["epochs"] == summary["epochs"].get<int>() + 1);
  CHECK(summary_of(program / "run")["train_seconds"] > summary["train_seconds"]);
}

TEST_CASE("resume: without a checkpoint a run begins anew only if that overwrites no model") {
  const Program program;
  REQUIRE(program.run(job_of("1", {"--output", "run", "--set", "checkpoint.keep_last=0"})).exit_code == 0);
  CHECK_THAT(program.run(job_of("1", kHere)).out, ContainsSubstring("nothing is left to train"));
  const Completed more = program.run(job_of("2", kHere));
  CHECK(more.exit_code == 5);
  CHECK_THAT(more.err, ContainsSubstring("has no checkpoint to go on from"));
  CHECK(summary_of(program / "run")["epochs"] == 1);

  // A run that failed saves no model.
  nlohmann::json failed = summary_of(program / "run");
  failed["status"] = "failed";
  write_text(program / "run/summary.json", failed.dump());
  CHECK(program.run(job_of("2", kHere)).exit_code == 5);
  failed["model_sha256"] = "";  // the disk was full when the model's file was to be made durable
  write_text(program / "run/summary.json", failed.dump());
  CHECK(program.run(job_of("2", {"--output", "run", "--resume=auto", "--set", "checkpoint.keep_last=0"})).exit_code ==
        0);
  failed = summary_of(program / "run");
  failed["status"] = "failed";
  write_text(program / "run/summary.json", failed.dump());
  fs::remove(program / "run/model.safetensors");
  const Completed anew =
      program.run(job_of("1", {"--output", "run", "--resume=auto", "--set", "checkpoint.keep_last=0"}));
  CHECK(anew.exit_code == 0);
  CHECK_THAT(anew.err, ContainsSubstring("'run' has no checkpoint: its run begins anew"));

  // A run that was killed between its model and its summary.
  fs::remove(program / "run/summary.json");
  REQUIRE(fs::exists(program / "run/model.safetensors"));
  const Completed again = program.run(job_of("2", kHere));
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.err, ContainsSubstring("'run' has no checkpoint: its run begins anew"));
  CHECK(summary_of(program / "run")["epochs"] == 2);

  // A model that no run has made there.
  fs::create_directory(program / "other");
  fs::copy_file(program / "run/model.safetensors", program / "other/model.safetensors");
  CHECK(program.run(job_of("1", {"--output", "other", "--resume=auto"})).exit_code == 5);
  CHECK(read_text(program / "other/model.safetensors") == read_text(program / "run/model.safetensors"));
}

TEST_CASE("resume: an attempt that is refused changes nothing") {
  const Program program;
  REQUIRE(program.run(job_of("1", {"--output", "run"})).exit_code == 0);
  const std::string summary = read_text(program / "run/summary.json");
  const std::string metrics = read_text(program / "run/metrics.jsonl");
  const Completed refused = program.run(job_of("2", {"--output", "run", "--resume=auto", "--set", "training.seed=5"}));
  CHECK(refused.exit_code == 5);
  const std::string named = fs::relative(checkpoints_in(program / "run").front(), program.directory()).string();
  CHECK(program.run(job_of("1", {"--resume", named, "--data-root", "nowhere", "--set", "data={mnist{}}"})).exit_code ==
        5);
  CHECK(read_text(program / "run/summary.json") == summary);
  CHECK(read_text(program / "run/metrics.jsonl") == metrics);
  // A slash at the end, as a shell completes it, names the same run.
  const Completed slash = program.run(job_of("1", {"--resume", named + "/"}));
  CHECK(slash.exit_code == 0);
  CHECK_FALSE(fs::exists(program / "run/checkpoints/metrics.jsonl"));
  const Completed nothing = program.run(job_of("1", {"--resume", "run"}));
  CHECK(nothing.exit_code == 0);
  CHECK_THAT(nothing.out,
             ContainsSubstring("training.max_epochs is 1: nothing is left to train; train more epochs by --set "));
}

TEST_CASE("resume: a damaged checkpoint is set aside, and the one before it is used") {
  const Program program;
  REQUIRE(program.run(job_of("1", {"--output", "run"})).exit_code == 0);
  const std::vector<fs::path> all = checkpoints_in(program / "run");
  REQUIRE(all.size() >= 2);
  const std::string state = read_text(all.back() / "state.txtpb");
  write_text(all.back() / "state.txtpb", state.substr(0, state.size() / 2));
  fs::remove(program / "run/summary.json");
  const Completed resumed = program.run(job_of("1", kHere));
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.err, ContainsSubstring("state.txtpb") && ContainsSubstring(".damaged") &&
                              ContainsSubstring(fs::relative(all[all.size() - 2], program.directory()).string()));
  CHECK(fs::exists(all.back().string() + ".damaged"));
  CHECK(fs::exists(all.back()));  // written again
}

TEST_CASE("resume: a damaged checkpoint of another run keeps its name") {
  const Program program;
  REQUIRE(program.run(job_of("1", {"--output", "run"})).exit_code == 0);
  const std::vector<fs::path> all = checkpoints_in(program / "run");
  REQUIRE(all.size() >= 2);
  write_text(all.back() / "state.txtpb", "");
  const Completed resumed = program.run(job_of("1", {"--output", "other", "--resume", "run"}));
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.err, ContainsSubstring("it is passed over"));
  CHECK(checkpoints_in(program / "run") == all);
  CHECK(summary_of(program / "other")["model_sha256"] == summary_of(program / "run")["model_sha256"]);
}

TEST_CASE("resume: a run that goes on removes what a killed process has left, and keeps a superseded model") {
  const Program program;
  REQUIRE(program.run(job_of("1", kHere)).exit_code == 0);
  const fs::path partial = program / "run/checkpoints/.partial-1-0";
  fs::create_directory(partial);
  write_text(partial / "model.safetensors", "cut off");
  const fs::path file = program / "run/summary.json.partial-4711";
  write_text(file, "cut off");
  const fs::path superseded = program / "run/best.safetensors.superseded";
  write_text(superseded, "a model");
  const Completed resumed = program.run(job_of("2", kHere));
  INFO(resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK_FALSE(fs::exists(partial));
  CHECK_FALSE(fs::exists(file));
  CHECK(read_text(superseded) == "a model");
}

TEST_CASE("resume: a second process is refused, and told which one trains") {
  const Program program;
  Subprocess run = program.start(job_of("100000", kHere));
  REQUIRE(run.wait_for_message("checkpoint of epoch"));
  for (const auto& arguments : {kHere, std::vector<std::string>{"--output", "run"}}) {
    const Completed second = program.run(job_of("100000", arguments));
    CHECK(second.exit_code == 2);
    CHECK_THAT(second.err, ContainsSubstring("process " + std::to_string(run.process()) + " is training in 'run'"));
  }
  run.send(SIGKILL);
  run.wait();
}

TEST_CASE("resume: from a named checkpoint, in a new directory or in its own") {
  const Program program;
  REQUIRE(program.run(job_of("1", {"--output", "run"})).exit_code == 0);
  const std::vector<fs::path> all = checkpoints_in(program / "run");
  const std::string earlier = fs::relative(all.front(), program.directory()).string();
  const Completed copy = program.run(job_of("1", {"--output", "copy", "--resume", earlier + "/"}));
  CHECK(copy.exit_code == 0);
  CHECK(summary_of(program / "copy")["model_sha256"] == summary_of(program / "run")["model_sha256"]);
  CHECK(checkpoints_in(program / "run") == all);

  // The number may stand without its zeros.
  const std::string number = std::to_string(std::stoull(all.front().filename().string()));
  const Completed own = program.run(job_of("1", {"--resume", "run/checkpoints/" + number}));
  CHECK(own.exit_code == 0);
  CHECK_THAT(own.err, ContainsSubstring(".superseded"));
  CHECK(summary_of(program / "run")["model_sha256"] == summary_of(program / "copy")["model_sha256"]);
}

TEST_CASE(
    "resume: a run that goes on elsewhere and is killed before its first checkpoint goes on from the same point") {
  const Program program;
  REQUIRE(program.run(job_of("1", {"--output", "run"})).exit_code == 0);
  const std::string earlier = fs::relative(checkpoints_in(program / "run").front(), program.directory()).string();
  const std::vector<std::string> elsewhere = job_of("1", {"--output", "copy", "--resume", earlier});
  REQUIRE(program.run(elsewhere).exit_code == 0);
  CHECK(read_text(program / "copy/resumed_from.txt") == (program / earlier).string() + "\n");
  const auto whole = summary_of(program / "copy");
  CHECK(program.run(elsewhere).exit_code == 2);  // its run has checkpoints
  for (const auto& again : {elsewhere, job_of("1", {"--output", "copy", "--resume=auto"})}) {
    fs::remove_all(program / "copy/checkpoints");
    for (const char* file : {"model.safetensors", "summary.json", "best.safetensors"})
      fs::remove(program / "copy" / file);
    const Completed resumed = program.run(again);
    INFO(resumed.err);
    REQUIRE(resumed.exit_code == 0);
    CHECK_THAT(resumed.err, ContainsSubstring("its run goes on from '" + (program / earlier).string() + "' once more"));
    CHECK(summary_of(program / "copy")["model_sha256"] == whole["model_sha256"]);
  }
  // Killed before its log had a line, or even before the file of its origin had its name.
  const std::string origin = read_text(program / "copy/resumed_from.txt");
  for (const std::string file : {"resumed_from.txt", "resumed_from.txt.partial-4194303"}) {
    for (const bool has_log : {false, true}) {
      CAPTURE(file, has_log);
      fs::create_directory(program / "early");
      write_text(program / "early" / file, origin);
      if (has_log) write_text(program / "early/metrics.jsonl", "");
      const Completed resumed = program.run(job_of("1", {"--output", "early", "--resume=auto"}));
      INFO(resumed.err);
      CHECK(resumed.exit_code == 0);
      CHECK_THAT(resumed.err, ContainsSubstring("once more"));
      CHECK(read_text(program / "early/resumed_from.txt") == origin);
      fs::remove_all(program / "early");
    }
  }
  // Killed within the file: nothing tells the run's origin, and its first epoch must not take the place of a later one.
  fs::create_directory(program / "early");
  write_text(program / "early/resumed_from.txt.partial-4194303", origin.substr(0, origin.size() / 2));
  const Completed lost = program.run(job_of("1", {"--output", "early", "--resume=auto"}));
  CHECK(lost.exit_code == 2);
  CHECK_THAT(lost.err, ContainsSubstring("was killed before it recorded which one; give that again with --resume"));
  CHECK(program.run(job_of("1", {"--output", "early", "--resume", earlier})).exit_code == 0);
  CHECK(read_text(program / "early/resumed_from.txt") == origin);
  // The run that it began from is gone.
  fs::remove_all(program / "copy/checkpoints");
  for (const char* file : {"model.safetensors", "summary.json"}) fs::remove(program / "copy" / file);
  fs::remove_all(program / "run");
  const Completed gone = program.run(job_of("1", {"--output", "copy", "--resume=auto"}));
  CHECK(gone.exit_code == 5);
  CHECK_THAT(gone.err, ContainsSubstring("is gone; begin anew from another one"));
}

TEST_CASE("resume: a pipe in the place of a run's file is refused, not waited for") {
  const Program program;
  for (const std::string file : {"metrics.jsonl", "resumed_from.txt"}) {
    CAPTURE(file);
    fs::create_directory(program / "run");
    REQUIRE(mkfifo((program / "run" / file).c_str(), 0600) == 0);
    const Completed refused = program.run(job_of("1", kHere));
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, ContainsSubstring("'run/" + file + "' is not a file; remove it, or choose another"));
    CHECK(std::distance(fs::directory_iterator(program / "run"), {}) == 1);
    fs::remove_all(program / "run");
  }
}

TEST_CASE("resume: a changed bit of the best model is noticed by evaluation and by a run that goes on") {
  const Program program;
  REQUIRE(program.run(job_of("2", kHere)).exit_code == 0);
  const auto best = summary_of(program / "run")["best_model"];
  const std::string whole = read_text(program / "run/best.safetensors");
  CHECK(program.run({"evaluate", "run", "--checkpoint", "best"}).exit_code == 0);
  std::string changed = whole;
  changed[changed.size() - 2] = static_cast<char>(changed[changed.size() - 2] ^ 1);
  write_text(program / "run/best.safetensors", changed);
  for (const bool has_checkpoints : {true, false}) {  // without them the summary has the hash
    CAPTURE(has_checkpoints);
    if (!has_checkpoints) fs::rename(program / "run/checkpoints", program / "aside");
    if (!has_checkpoints) fs::create_directory(program / "run/checkpoints");
    const Completed evaluated = program.run({"evaluate", "run", "--checkpoint", "best"});
    CHECK(evaluated.exit_code == 5);
    CHECK_THAT(evaluated.err, ContainsSubstring("it was changed after its run had saved it"));
  }
  fs::remove(program / "run/checkpoints");
  fs::rename(program / "aside", program / "run/checkpoints");
  const Completed resumed = program.run(job_of("3", kHere));
  INFO(resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.err, ContainsSubstring("best.safetensors.damaged': its SHA-256 is not the one"));
  CHECK(read_text(program / "run/best.safetensors.damaged") == changed);
  const Completed after = program.run({"evaluate", "run", "--checkpoint", "best"});
  CHECK(after.exit_code == 0);
}

TEST_CASE("resume: a new directory in which nothing would be trained is refused, and a folder of runs, too") {
  const Program program;
  REQUIRE(program.run(job_of("1", {"--output", "runs/one"})).exit_code == 0);
  const Completed nothing = program.run(job_of("1", {"--output", "new", "--resume", "runs/one"}));
  CHECK(nothing.exit_code == 2);
  CHECK_THAT(nothing.err, ContainsSubstring("nothing is left to train; train more epochs by --set "
                                            "training.max_epochs="));
  CHECK_FALSE(fs::exists(program / "new"));
  const Completed folder = program.run(job_of("1", {"--output", "runs", "--resume=auto"}));
  CHECK(folder.exit_code == 2);
  CHECK_THAT(folder.err, ContainsSubstring("'runs' is a folder of runs") &&
                             ContainsSubstring("by --output runs/one --resume=auto"));
}

TEST_CASE("resume: what cannot work is refused with the right exit code") {
  const Program program;
  REQUIRE(program.run(job_of("1", {"--output", "run"})).exit_code == 0);
  const auto answer = [&](const std::vector<std::string>& more, int exit_code, const std::string& text) {
    const Completed result = program.run(job_of("2", more));
    CAPTURE(result.err);
    CHECK(result.exit_code == exit_code);
    CHECK_THAT(result.err, ContainsSubstring(text));
  };
  answer({"--resume=auto"}, 2, "--resume=auto needs --output DIR");
  answer({"--output", "run"}, 2, "'run' holds a run already");
  answer({"--output", "run", "--resume=aut"}, 2, "; did you mean 'auto'?");
  answer({"--output", "run", "--resume"}, 2, "--resume has no value; it is one of auto|none|DIR");
  answer({"--resume=ru"}, 2, "; did you mean 'run'?");
  answer({"--output", "new", "--resume=elsewhere"}, 2,
         "'elsewhere' is neither a checkpoint nor the directory of a run");
  answer({"--resume=auto", "--dry-run"}, 2, "--resume and --dry-run");
  answer({"--output", "run", "--resume=auto", "--set", "training.seed=7"}, 5,
         "training.seed: 1 in the checkpoint, 7 in the job");
  answer({"--output", "run", "--resume=auto", "--set", "model={zoo{mlp{}}}"}, 5, "model.zoo");
  answer({"--output", "run", "--resume=auto", "--set", "checkpoint.keep_last=-1"}, 2, "keep_last must be in [0, 1000]");
  CHECK_FALSE(fs::exists(program / "new"));
  const std::string newest = checkpoints_in(program / "run").back().filename().string();
  for (const std::string& checkpoint : {std::string("best"), std::string("last"), newest}) {
    CAPTURE(checkpoint);
    CHECK(program.run({"evaluate", "run", "--checkpoint", checkpoint}).exit_code == 0);
  }
  const Completed best = program.run({"evaluate", "run", "--checkpoint", "best"});
  CHECK(best.err.empty());
  CHECK(best.out.starts_with("test_accuracy " + summary_of(program / "run")["best_test_accuracy"].dump() + "\n"));
  // The directory of a checkpoint is verified by its manifest, so nothing is left to warn about.
  const Completed last = program.run({"evaluate", "run", "--checkpoint", "last"});
  const Completed named = program.run({"evaluate", "run/checkpoints/" + newest + "/"});
  CHECK(named.exit_code == 0);
  CHECK(named.err.empty());
  CHECK(named.out == last.out);
  const fs::path model = program / ("run/checkpoints/" + newest + "/model.safetensors");
  std::string bytes = read_text(model);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_text(model, bytes);
  const Completed damaged = program.run({"evaluate", "run/checkpoints/" + newest});
  CHECK(damaged.exit_code == 5);
  CHECK_THAT(damaged.err, ContainsSubstring("model.safetensors: its XXH3-128 is"));
  const Completed mistyped = program.run({"evaluate", "run", "--checkpoint", "bset"});
  CHECK(mistyped.exit_code == 2);
  CHECK_THAT(mistyped.err,
             ContainsSubstring("has no checkpoint 'bset'; it has ") && ContainsSubstring("; did you mean 'best'?"));
  const Completed unknown = program.run({"evaluate", "run", "--checkpoint", "17"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("has no checkpoint '17'"));
}
