// Jobs with sparse rows, as a user runs them: files, messages and exit codes.
#include <csignal>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "tests/cli/small_run.h"
#include "tests/support/catch.h"

namespace {

using namespace arbalest::tests;

const std::string kJob = R"(model { sparse_logistic {} }
data { libsvm { directory: "." features: 4 } }
synchronization { delayed_proximal { l1: 0.01 } }
learners { per_device { fixed: 2 } }
devices: "cpu"
)";

// Feature 1 speaks for the label 1, feature 2 against it.
std::string rows(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const bool is_noise = i % 10 == 0;
    text += i % 2 == 0 ? fmt::format("{} 1:1 3:0.5\n", is_noise ? "-1" : "+1")
                       : fmt::format("{} 2:1 4:0.25\n", is_noise ? "+1" : "-1");
  }
  return text;
}

void write_small_job(const Program& program) {
  write_text(program / "job.txtpb", kJob);
  write_text(program / "train.libsvm", rows(200));
  write_text(program / "test.libsvm", rows(50));
}

}  // namespace

TEST_CASE("sparse: train, evaluate, and what is refused") {
  const Program program;
  write_small_job(program);
  const auto run = [&](std::vector<std::string> arguments) {
    Completed done = program.run(arguments);
    INFO(done.err);
    return done;
  };
  CHECK(run({"validate", "job.txtpb"}).out == "job.txtpb: valid\n");
  const Completed train = run({"train", "job.txtpb", "--data-root", ".", "--output", "run"});
  CHECK(train.exit_code == 0);
  CHECK_THAT(train.out, ContainsSubstring("rows/s"));
  CHECK_THAT(train.err, ContainsSubstring("5 blocks of coordinates, delay at most 0, l1 0.01"));
  const auto summary = summary_of(program / "run");
  CHECK(summary["status"] == "completed");
  CHECK(summary["test_accuracy"].get<double>() > 0.85);
  CHECK(summary["objective"].is_number());
  const Completed evaluate = run({"evaluate", "run", "--json"});
  CHECK(evaluate.exit_code == 0);
  CHECK(nlohmann::json::parse(evaluate.out)["test_accuracy"] == summary["test_accuracy"]);
  CHECK(nlohmann::json::parse(evaluate.out)["test_loss"] == summary["test_loss"]);
  CHECK(run({"train", "job.txtpb", "--data-root", ".", "--dry-run"}).exit_code == 0);

  CHECK(run({"train", "job.txtpb", "--data-root", ".", "--output", "run", "--resume=auto"}).exit_code == 2);
  CHECK(run({"train", "job.txtpb", "--data-root", ".", "--trace", "trace.json"}).exit_code == 2);
  CHECK(run({"evaluate", "run", "--per-class"}).exit_code == 2);
  CHECK(run({"evaluate", "run", "--split", "validation"}).exit_code == 2);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"inspect", "job.txtpb"},
                                             {"inspect", "job.txtpb", "--links", "1GB/s,5us", "--devices-assumed", "2"},
                                             {"data", "verify", "job.txtpb"},
                                             {"predict", "run", "x.npy"},
                                             {"export", "run", "--output", "x.onnx"}}) {
    INFO(fmt::format("{}", command.front()));
    CHECK(run(command).exit_code == 3);
  }
  // Settings that the model refuses are mistakes of the command line; tune sets learners.per_device.auto.
  CHECK(run({"train", "job.txtpb", "--set", "training.batch_size=8"}).exit_code == 2);
  CHECK(run({"tune", "job.txtpb"}).exit_code == 2);
}

TEST_CASE("sparse: bad rows end the run with exit code 4, the file and the line") {
  const Program program;
  write_small_job(program);
  write_text(program / "train.libsvm", "+1 1:1\n-1 3:1 2:1\n");
  const Completed order = program.run({"train", "job.txtpb", "--data-root", ".", "--output", "run"});
  CHECK(order.exit_code == 4);
  CHECK_THAT(order.err, ContainsSubstring("train.libsvm:2: feature number 2 does not ascend from 3"));
  CHECK_FALSE(std::filesystem::exists(program / "run/metrics.jsonl"));
  write_text(program / "train.libsvm", "+1 1:1\n-1 5:1\n");
  const Completed beyond = program.run({"train", "job.txtpb", "--data-root", "."});
  CHECK(beyond.exit_code == 4);
  CHECK_THAT(beyond.err, ContainsSubstring("feature number 5 is beyond the 4 features of the model"));
}

TEST_CASE("sparse: SIGTERM ends the run with 143, and the model is there") {
  const Program program;
  write_small_job(program);
  auto run = program.start({"train", "job.txtpb", "--data-root", ".", "--output", "run", "--set",
                            "training.max_epochs=1000000", "--set", "synchronization.delayed_proximal.tolerance=0"});
  REQUIRE(run.wait_for_message("epoch 3/"));
  run.send(SIGTERM);
  const Completed done = run.wait();
  INFO(done.err);
  CHECK(done.exit_code == 143);
  CHECK(summary_of(program / "run")["status"] == "stopped");
  CHECK(std::filesystem::exists(program / "run/model.safetensors"));
  CHECK(program.run({"evaluate", "run"}).exit_code == 0);
}
