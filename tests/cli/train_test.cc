// Training runs of the program: the files they leave, and how they end.
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"
#include "tests/support/idx_writer.h"
#include "tests/support/skip.h"

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("train: leaves job, metrics, summary and model, and evaluate gives exactly the same accuracy") {
  const Program program;
  const Completed trained = program.run(kSmall);
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK_THAT(trained.out, ContainsSubstring("test accuracy") && ContainsSubstring("run/model.safetensors"));
  CHECK_THAT(trained.err, ContainsSubstring("epoch 1/1"));
  CHECK(trained.err.find('\x1b') == std::string::npos);

  const json summary = summary_of(program / "run");
  CHECK(summary["epochs"] == 1);
  CHECK(summary["model_sha256"].get<std::string>().size() == 64);

  const Completed evaluated = program.run({"evaluate", "run", "--json"});
  INFO(evaluated.err);
  REQUIRE(evaluated.exit_code == 0);
  CHECK(json::parse(evaluated.out)["test_accuracy"].get<double>() == summary["test_accuracy"].get<double>());

  const Completed by_class = program.run({"evaluate", "run", "--json", "--per-class"});
  REQUIRE(by_class.exit_code == 0);
  double correct = 0.0;
  double examples = 0.0;
  for (std::size_t label = 0; label < 10; ++label) {
    for (std::size_t predicted = 0; predicted < 10; ++predicted) {
      const double count = json::parse(by_class.out)["confusion_matrix"][label][predicted];
      examples += count;
      if (label == predicted) correct += count;
    }
  }
  CHECK(examples == json::parse(by_class.out)["examples"]);
  CHECK(correct / examples == summary["test_accuracy"].get<double>());
  CHECK_THAT(program.run({"evaluate", "run", "--per-class"}).out,
             ContainsSubstring("most mistaken for") && ContainsSubstring("confusion matrix"));

  const Completed hash =
      Subprocess({"/usr/bin/sha256sum", "run/model.safetensors"}, program.environment(), program.directory()).wait();
  CHECK(hash.out.starts_with(summary["model_sha256"].get<std::string>()));

  // A second run does not overwrite the first.
  const std::string before = read_text(program / "run/summary.json");
  const Completed again = program.run(kSmall);
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, ContainsSubstring("holds a run already"));
  CHECK(read_text(program / "run/summary.json") == before);

  // Evaluation on other devices gives the model's accuracy, even if the job's devices are missing.
  const std::string job = read_text(program / "run/job.txtpb");
  const Completed elsewhere = program.run({"evaluate", "run", "--json", "--devices", "cpu"});
  CHECK(elsewhere.exit_code == 0);
  CHECK(json::parse(elsewhere.out)["test_accuracy"].get<double>() ==
        Approx(summary["test_accuracy"].get<double>()).margin(0.001));
  CHECK(program.run({"evaluate", "run", "--devices", "gpu"}).exit_code == 2);
  std::string gone = job;
  gone.replace(gone.find("devices: \""), std::string("devices: \"").size(), "devices: \"cuda:4096\" #");
  write_text(program / "run/job.txtpb", gone);
  const Completed moved = program.run({"evaluate", "run", "--json"});
  CHECK(moved.exit_code == 0);
  CHECK_THAT(moved.err, ContainsSubstring("device 'cuda:4096'") && ContainsSubstring("Evaluating on "));
  write_text(program / "run/job.txtpb", job);

  // A changed, damaged or missing model is refused.
  const std::string model = read_text(program / "run/model.safetensors");
  const std::string sha256 = summary["model_sha256"];
  std::string other = model;
  other.back() = static_cast<char>(other.back() ^ 1);
  write_text(program / "run/model.safetensors", other);
  const Completed changed = program.run({"evaluate", "run"});
  CHECK(changed.exit_code == 5);
  CHECK(changed.out.empty());
  CHECK_THAT(changed.err, ContainsSubstring("'run/model.safetensors'") && ContainsSubstring("its SHA-256 is ") &&
                              ContainsSubstring("says " + sha256.substr(0, 12) + "...; restore the file"));
  write_text(program / "run/model.safetensors", model.substr(0, model.size() - 1));
  const Completed damaged = program.run({"evaluate", "run"});
  CHECK(damaged.exit_code == 5);
  CHECK_THAT(damaged.err, ContainsSubstring("model.safetensors"));
  fs::remove(program / "run/model.safetensors");
  CHECK(program.run({"evaluate", "run"}).exit_code == 5);

  // A run that was killed before it wrote its summary still has a model.
  write_text(program / "run/model.safetensors", model);
  fs::remove(program / "run/summary.json");
  const Completed killed = program.run({"evaluate", "run", "--json"});
  CHECK(killed.exit_code == 0);
  CHECK(killed.out == evaluated.out);
  CHECK_THAT(killed.err, ContainsSubstring("warning: 'run' was cut short"));
}

TEST_CASE("train: a dry run runs a step of each phase and leaves no files") {
  const Program program;
  const Completed result = program.run({"train", Program::config("lenet-digits"), "--dry-run"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK_FALSE(result.out.empty());
  CHECK(fs::is_empty(program.directory()));
}

TEST_CASE("train: kernels of another run that cannot be read, or have no effect, are refused") {
  const Program program;
  fs::create_directory(program / "folder");
  const std::string job = Program::config("lenet-digits");
  for (const auto& [words, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--kernels", "none.txtpb"}, "'none.txtpb' cannot be read; name the kernels.txtpb"},
           {{"--kernels", "folder"}, "'folder' is a directory; name the kernels.txtpb"},
           {{"--kernels", "none.txtpb", "--set", "training.kernels=FIXED"}, "--kernels has no effect on a job with"}}) {
    std::vector<std::string> command{"train", job, "--output", "run"};
    command.insert(command.end(), words.begin(), words.end());
    const Completed result = program.run(command);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring(said));
    CHECK_FALSE(fs::exists(program / "run/job.txtpb"));
  }
}

TEST_CASE("train: an output directory that cannot be written is refused before training") {
  const Program program;
  write_text(program / "file", "");
  for (const std::string output : {"file", "file/below", "/proc/arbalest", "/proc"}) {
    INFO(output);
    const Completed result = program.run({"train", Program::config("lenet-digits"), "--output", output});
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring("output directory '" + output + "'"));
  }
}

TEST_CASE("train: missing data exits 4, names the searched path, and leaves no files") {
  Program program;
  const std::vector<std::string> arguments = {"train", Program::config("lenet-mnist"), "--output", "run"};
  Completed result = program.run(with(arguments, {"--data-root", "here"}));
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.err, ContainsSubstring("here/"));
  program.set_environment("ARBALEST_DATA=there");
  result = program.run(arguments);
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.err, ContainsSubstring("there/"));
  CHECK(fs::is_empty(program.directory()));
}

TEST_CASE("train: corrupt data exits 4, names the file, and leaves no files") {
  const Program program;
  fs::create_directories(program / "data/mnist");
  const std::string images = idx_images(10, 28, 28);
  const std::vector<std::string> arguments = {
      "train", Program::config("lenet-mnist"), "--set", "training.batch_size=2", "--data-root", "data", "--output",
      "run"};
  struct Case {
    const char* file;
    std::string bytes;
    const char* message;
  };
  for (const Case& test : std::vector<Case>{
           {"t10k-images-idx3-ubyte", images.substr(0, images.size() - 1), "truncated"},
           {"t10k-images-idx3-ubyte", images + "x", "goes on after byte 7856"},
           {"train-images-idx3-ubyte", "PK" + images, "is not an IDX file"},
           {"train-images-idx3-ubyte.gz", gzip(images).substr(0, 100), "truncated"},
           {"train-labels-idx1-ubyte", idx_labels(10, 11) + '\x0b', "label"},
           {"train-labels-idx1-ubyte", idx_labels(9), "holds 9 labels"},
       }) {
    INFO(test.message);
    fs::remove_all(program / "data");
    fs::create_directories(program / "data/mnist");
    for (const std::string split : {"train", "t10k"}) {
      write_text(program / ("data/mnist/" + split + "-images-idx3-ubyte"), images);
      write_text(program / ("data/mnist/" + split + "-labels-idx1-ubyte"), idx_labels(10));
    }
    const std::string file = std::string("data/mnist/") + test.file;
    if (file.ends_with(".gz")) fs::remove(program / file.substr(0, file.size() - 3));
    write_text(program / file, test.bytes);
    const Completed result = program.run(arguments);
    CHECK(result.exit_code == 4);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, ContainsSubstring(file) && ContainsSubstring(test.message));
    CHECK_FALSE(fs::exists(program / "run"));
  }
}

TEST_CASE("train: a signal ends the run after the round, and the model is saved") {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    const Program program;
    Subprocess run = program.start(
        {"train", Program::config("lenet-digits"), "--set", "training.max_epochs=100000", "--output", "run"});
    REQUIRE(run.wait_for_message("\nepoch "));
    run.send(signal);
    const Completed result = run.wait();
    INFO(result.err);
    CHECK(result.exit_code == 128 + signal);
    CHECK(fs::exists(program / "run/model.safetensors"));
    CHECK(summary_of(program / "run")["status"] == "stopped");
    CHECK(program.run({"evaluate", "run"}).exit_code == 0);
  }
}

TEST_CASE("train: several SIGHUPs of a closed terminal count as one") {
  const Program program;
  Subprocess run = program.start(
      {"train", Program::config("lenet-digits"), "--set", "training.max_epochs=100000", "--output", "run"});
  REQUIRE(run.wait_for_message("\nepoch "));
  while (run.is_running()) {
    run.send(SIGHUP);
    std::this_thread::yield();
  }
  CHECK(run.wait().exit_code == 128 + SIGHUP);
  CHECK(fs::exists(program / "run/summary.json"));
}

TEST_CASE("train: a run under nohup outlives its terminal") {
  const Program program;
  const std::string command = "trap '' HUP; exec " ARBALEST_PROGRAM " train " + Program::config("lenet-digits") +
                              " --set training.max_epochs=100000 --output run";
  Subprocess run({"/bin/sh", "-c", command}, program.environment(), program.directory());
  REQUIRE(run.wait_for_message("\nepoch "));
  CHECK(run.catches(SIGTERM));
  CHECK_FALSE(run.catches(SIGHUP));
  run.send(SIGHUP);
  run.send(SIGTERM);
  CHECK(run.wait().exit_code == 128 + SIGTERM);
}

TEST_CASE("train: a signal ends a dry run at once") {
  const Program program;
  REQUIRE(mkfifo((program / "job.txtpb").c_str(), 0600) == 0);
  Subprocess run = program.start({"train", "job.txtpb", "--dry-run"});
  std::ofstream job(program / "job.txtpb");  // opens when the program reads it
  run.send(SIGINT);
  job << read_text(Program::config("logistic-digits"));
  job.close();
  CHECK(run.wait().exit_code == -SIGINT);
}

TEST_CASE("train: a failure keeps its exit code even if the result cannot be written") {
  const Program program;
  const std::string command =
      ARBALEST_PROGRAM " train " + Program::config("lenet-digits") +
      " --set learning_rate.base=1000 --set learners.per_device.fixed=1 --output run >/dev/full";
  const Completed result = Subprocess({"/bin/sh", "-c", command}, program.environment(), program.directory()).wait();
  CHECK(result.exit_code == 7);
  CHECK_THAT(result.err, ContainsSubstring("cannot write to standard output"));
}

TEST_CASE("train: a run that diverges exits 7 and keeps the last finite model") {
  const Program program;
  const Completed result = program.run({"train", Program::config("lenet-digits"), "--set", "learning_rate.base=1000",
                                        "--set", "learners.per_device.fixed=2", "--output", "run"});
  INFO(result.err);
  CHECK(result.exit_code == 7);
  CHECK(summary_of(program / "run")["status"] == "diverged");
  CHECK_THAT(result.err, ContainsSubstring("learner"));
  CHECK(result.err.find("-nan") == std::string::npos);
  CHECK(fs::exists(program / "run/model.safetensors"));
}

TEST_CASE("train: a second signal ends a run that does not reach the end of its round") {
#if defined(__SANITIZE_THREAD__)
  skip_test("ThreadSanitizer keeps signals back while a thread waits in open()");
#endif
  const Program program;
  REQUIRE(mkfifo((program / "job.txtpb").c_str(), 0600) == 0);
  Subprocess run = program.start({"train", "job.txtpb"});  // waits until the job is written
  while (!run.catches(SIGINT)) std::this_thread::yield();
  // Signals that arrive before the first one is delivered count as one.
  while (run.is_running()) {
    run.send(SIGINT);
    std::this_thread::yield();
  }
  CHECK(run.wait().exit_code == 130);
}

TEST_CASE("train: without --output the run gets a directory below runs/") {
  const Program program;
  std::vector<std::string> arguments = kSmall;
  arguments.resize(arguments.size() - 2);
  const Completed result = program.run(with(arguments, {"--quiet"}));
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("epoch 1/1") == std::string::npos);
  REQUIRE(std::distance(fs::directory_iterator(program / "runs"), {}) == 1);
  const std::string run = fs::directory_iterator(program / "runs")->path().filename();
  CHECK(run.starts_with("logistic-digits-20"));
  CHECK_THAT(result.out, ContainsSubstring("runs/" + run + "/model.safetensors"));
}

}  // namespace arbalest::tests
