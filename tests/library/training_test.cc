// arbalest::train, as another program calls it.
#include <arbalest/error.h>
#include <arbalest/training.h>
#include <arbalest/version.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/library/small_job.h"
#include "tests/support/catch.h"
#include "tests/support/subprocess.h"

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;

// Returns the error that `call` throws.
template <typename Call>
Error error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error was thrown");
  throw std::logic_error("FAIL returned");
}

std::vector<std::string> names_of(const Metrics& metrics) {
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) names.push_back(name);
  return names;
}

Completed run_program(const SmallJob& job, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), ARBALEST_PROGRAM);
  return Subprocess(arguments, {"PATH=/usr/bin:/bin"}, job / "").wait();
}

}  // namespace

TEST_CASE("library: a run has the bytes of a run of the program") {
  SmallJob job;
  std::vector<EpochResult> epochs;
  job.options.on_epoch = [&](const EpochResult& epoch) {
    epochs.push_back(epoch);
    return Next::kGoOn;
  };
  const TrainingSummary summary = train(job.options);
  CHECK(summary.status == TrainingStatus::kCompleted);
  CHECK(summary.message.empty());
  CHECK(summary.directory == job.run());
  CHECK(summary.epochs == 4);
  CHECK(summary.devices == std::vector<std::string>{"cpu"});
  CHECK(summary.learners_per_device == std::vector<int>{1});
  REQUIRE(epochs.size() == 4);
  CHECK(epochs[0].epoch == 1);
  CHECK(names_of(summary.metrics) == std::vector<std::string>{"test_accuracy", "test_loss"});
  CHECK(names_of(epochs[3].metrics) ==
        std::vector<std::string>{"test_accuracy", "test_loss", "train_accuracy", "train_loss"});
  for (const auto& [name, value] : summary.metrics) CHECK(epochs[3].metrics.at(name) == value);
  CHECK(epochs[0].learning_rate == Approx(0.01));

  write_text(job / "job.txtpb", job.options.job_text);
  const Completed done = run_program(
      job, {"train", "job.txtpb", "--set", job.options.settings[0], "--data-root", ".", "--output", "program"});
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  const auto expected = nlohmann::json::parse(read_text(job / "program/summary.json"));
  CHECK(summary.model_sha256 == expected["model_sha256"]);
  for (const auto& [name, value] : summary.metrics) CHECK(expected[name].get<double>() == value);
  CHECK(read_text(job / "run/job.txtpb") == read_text(job / "program/job.txtpb"));
}

TEST_CASE("library: a job file is read like a job's text, and its name stands in messages") {
  SmallJob job;
  write_text(job / "job.txtpb", job.options.job_text);
  const std::string sha256 = train(job.options).model_sha256;
  job.options.job_text.clear();
  job.options.job_file = job / "job.txtpb";
  job.options.output = job / "again";
  CHECK(train(job.options).model_sha256 == sha256);
  write_text(job / "job.txtpb", "model { zoo { lennet {} } }");
  const Error error = error_of([&] { train(job.options); });
  CHECK(error.kind() == ErrorKind::kInvalidJob);
  CHECK_THAT(error.what(), ContainsSubstring((job / "job.txtpb").string() + ":1:15: error: "));
}

TEST_CASE("library: a callback stops a run, and the run goes on to the bytes of one that never stopped") {
  SmallJob job;
  job.options.output = job / "whole";
  const std::string sha256 = train(job.options).model_sha256;

  job.options.output = job.run();
  job.options.on_epoch = [](const EpochResult& epoch) { return epoch.epoch == 2 ? Next::kStop : Next::kGoOn; };
  const TrainingSummary stopped = train(job.options);
  CHECK(stopped.status == TrainingStatus::kStopped);
  CHECK(stopped.message == "stopped by its caller after 2 epochs");
  CHECK(stopped.epochs == 2);
  CHECK(fs::exists(job / "run/model.safetensors"));

  job.options.on_epoch = {};
  job.options.resume = "auto";
  const TrainingSummary whole = train(job.options);
  CHECK(whole.status == TrainingStatus::kCompleted);
  CHECK(whole.epochs == 4);
  CHECK(whole.model_sha256 == sha256);

  int epochs = 0;
  job.options.on_epoch = [&](const EpochResult&) { return ++epochs, Next::kGoOn; };
  const TrainingSummary again = train(job.options);
  CHECK(epochs == 0);
  CHECK_THAT(again.message, ContainsSubstring("nothing is left to train"));
  CHECK(again.epochs == 4);
  CHECK(again.model_sha256 == sha256);
  CHECK(again.metrics == whole.metrics);
}

TEST_CASE("library: the callback for progress stops a run within an epoch") {
  SmallJob job;
  job.options.settings = {"training.max_epochs=1000000"};
  std::optional<Progress> last;
  job.options.on_progress = [&](const Progress& progress) {
    last = progress;
    return Next::kStop;
  };
  CHECK(train(job.options).status == TrainingStatus::kStopped);
  REQUIRE(last);
  CHECK(last->max_epochs == 1'000'000);
  CHECK(last->epoch > 0.0);
}

TEST_CASE("library: another thread stops a run by a stop token") {
  SmallJob job;
  job.options.settings = {"training.max_epochs=1000000"};
  std::stop_source source;
  job.options.stop = source.get_token();
  std::jthread stopper;
  job.options.on_epoch = [&](const EpochResult& epoch) {
    if (epoch.epoch == 1) stopper = std::jthread([&] { source.request_stop(); });
    return Next::kGoOn;
  };
  const TrainingSummary summary = train(job.options);
  CHECK(summary.status == TrainingStatus::kStopped);
  CHECK(summary.epochs >= 1);

  job.options.output = job / "early";  // the request came before the run
  const TrainingSummary early = train(job.options);
  CHECK(early.status == TrainingStatus::kStopped);
  CHECK(early.epochs == 0);
}

TEST_CASE("library: an exception of a callback ends the run, which is saved, and reaches the caller") {
  struct Own {
    int epoch;
  };
  SmallJob job;
  int calls = 0;
  job.options.on_epoch = [&](const EpochResult& epoch) -> Next {
    ++calls;
    throw Own{epoch.epoch};
  };
  int thrown = 0;
  try {
    train(job.options);
  } catch (const Own& own) {
    thrown = own.epoch;
  }
  CHECK(thrown == 1);
  CHECK(calls == 1);
  CHECK(fs::exists(job / "run/model.safetensors"));
  job.options.on_epoch = {};
  job.options.resume = "auto";
  CHECK(train(job.options).epochs == 4);
}

TEST_CASE("library: warnings reach the callback") {
  SmallJob job;
  job.options.settings = {"optimizer.sgd.momentum=0.9", "synchronization.sma.central_momentum=0.9",
                          "learners.per_device.fixed=2"};
  std::vector<std::string> warnings;
  job.options.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  train(job.options);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings.front(), ContainsSubstring("central_momentum"));
}

TEST_CASE("library: a run that diverges says so in its summary") {
  SmallJob job(/*floats=*/true);
  write_text(job / "arrays/train_images.npy", npy("<f4", "60, 1, 4, 5", bytes_of(std::vector<float>(1200, 3e38F))));
  const TrainingSummary summary = train(job.options);
  CHECK(summary.status == TrainingStatus::kDiverged);
  CHECK_FALSE(summary.message.empty());
}

TEST_CASE("library: errors have the kinds and messages of the program") {
  SmallJob job;
  const auto kind_after = [&](const auto& change) {
    TrainingOptions options = job.options;
    change(options);
    const Error error = error_of([&] { train(options); });
    UNSCOPED_INFO(error.what());
    CHECK(error.exit_code() == static_cast<int>(error.kind()));
    CHECK_FALSE(fs::exists(job / "run"));
    return error.kind();
  };
  CHECK(kind_after([](TrainingOptions& options) { options.settings = {"training.batch_size=-1"}; }) ==
        ErrorKind::kUsage);
  CHECK(kind_after([](TrainingOptions& options) { options.job_text = "modell {}"; }) == ErrorKind::kInvalidJob);
  CHECK(kind_after([](TrainingOptions& options) { options.data_root = "nowhere"; }) == ErrorKind::kData);
  CHECK(kind_after([](TrainingOptions& options) { options.job_text = options.job_file = ""; }) == ErrorKind::kUsage);
  CHECK(kind_after([&](TrainingOptions& options) { options.resume = job / "nowhere"; }) == ErrorKind::kUsage);
  CHECK(kind_after([](TrainingOptions& options) { options.resume = "auto", options.output = ""; }) ==
        ErrorKind::kUsage);
  train(job.options);
  const Error again = error_of([&] { train(job.options); });
  CHECK(again.kind() == ErrorKind::kUsage);
  CHECK_THAT(again.what(), ContainsSubstring("holds a run already"));
}

TEST_CASE("library: runs in several threads have the bytes of runs alone") {
  SmallJob job;
  const std::string sha256 = train(job.options).model_sha256;
  std::vector<std::string> found(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < found.size(); ++i) {
      threads.emplace_back([&, i] {
        TrainingOptions options = job.options;
        options.output = job / ("run" + std::to_string(i));
        found[i] = train(options).model_sha256;
      });
    }
  }
  CHECK(found == std::vector<std::string>(3, sha256));
}

TEST_CASE("library: it leaves signals alone") {
  SmallJob job;
  const auto handlers = [] {
    std::vector<void (*)(int)> found;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGUSR1}) {
      struct sigaction action {};
      REQUIRE(sigaction(signal, nullptr, &action) == 0);
      found.push_back(action.sa_handler);
    }
    return found;
  };
  const auto before = handlers();  // Catch has some
  std::vector<void (*)(int)> during;
  job.options.on_epoch = [&](const EpochResult&) { return during = handlers(), Next::kGoOn; };
  train(job.options);
  CHECK(during == before);
  CHECK(handlers() == before);
}

}  // namespace arbalest::tests
