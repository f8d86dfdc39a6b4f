// Jobs with sparse rows, as a user runs them: files, messages and exit codes.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/cli/small_run.h"
#include "tests/support/catch.h"
#include "tests/support/ratings_writer.h"

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
  // Settings that the model refuses are mistakes of the command line.
  CHECK(run({"train", "job.txtpb", "--set", "training.batch_size=8"}).exit_code == 2);
}

TEST_CASE("sparse: a command that the job is not for says so, and blames no setting that the user has not given") {
  const Program program;
  write_small_job(program);
  REQUIRE(program.run({"train", "job.txtpb", "--data-root", ".", "--output", "run"}).exit_code == 0);
  const std::string ratings = Program::config("matrix-factorization-hogwild");
  struct Case {
    std::vector<std::string> command;
    int exit_code;
    std::string message;
  };
  for (const auto& [command, exit_code, message] : std::vector<Case>{
           {{"tune", "job.txtpb"}, 3, "'arbalest tune' needs a model of layers"},
           {{"tune", ratings}, 3, "'arbalest tune' is about mini-batches and replicas"},
           {{"inspect", ratings, "--links", "1GB/s,5us", "--devices-assumed", "2"},
            3,
            "'arbalest inspect --links' is about mini-batches and replicas"},
           {{"bench", "job.txtpb", "--target", "0.9", "--seeds", "1"}, 3, "'arbalest bench' needs a model of layers"},
           {{"bench", ratings, "--target", "0.9", "--seeds", "1"}, 2, "trains on ratings, which have no accuracy"},
           {{"evaluate", "run", "--devices", "cuda:7"}, 2, "arbalest: error: --devices: "},
           {{"evaluate", "run", "--devices", "cpu:9999"}, 2, "arbalest: error: --devices: "},
           {{"train", "job.txtpb", "--data-root", "nowhere"},
            4,
            "'nowhere/' does not exist, so the dataset is missing; name the folder of the data with --data-root"},
           {{"train", ratings, "--data-root", "nowhere"},
            4,
            "'nowhere/ratings' does not exist, so the dataset is missing; name the folder that holds 'ratings' "
            "with"}}) {
    const Completed done = program.run(command);
    INFO(command.front() << ": " << done.err);
    CHECK(done.exit_code == exit_code);
    CHECK_THAT(done.err, ContainsSubstring(message) && !ContainsSubstring("--set learners") &&
                             !ContainsSubstring("--set training") && !ContainsSubstring("--set devices"));
  }
}

TEST_CASE("sparse: a data root that the job does not use is told, and moved data are found by the run's job.txtpb") {
  const Program program;
  write_small_job(program);
  const auto move_data = [&](const char* from, const char* to) {
    std::filesystem::create_directory(program / to);
    for (const char* name : {"train.libsvm", "test.libsvm"}) {
      std::filesystem::rename(program / from / name, program / to / name);
    }
  };
  move_data(".", "data");
  std::filesystem::create_directory(program / "elsewhere");
  std::string job = kJob;
  job.replace(job.find("\".\""), 3, "\"./data\"");
  write_text(program / "job.txtpb", job);
  const auto has_warning = [](const Completed& done) {
    INFO(done.err);
    return done.err.find("--data-root has no effect: the job looks for its data in '/") != std::string::npos;
  };
  const std::vector<std::string> train{"train", "job.txtpb", "--output", "run"};
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{train, {"train", "job.txtpb", "--dry-run"}}) {
    std::vector<std::string> with_root = command;
    with_root.insert(with_root.end(), {"--data-root", "elsewhere"});
    const Completed done = program.run(with_root);
    CHECK(done.exit_code == 0);
    CHECK(has_warning(done));
  }
  CHECK(has_warning(program.run({"evaluate", "run", "--data-root", "elsewhere"})));
  CHECK_FALSE(has_warning(program.run({"evaluate", "run"})));
  CHECK_FALSE(has_warning(program.run({"evaluate", "run", "--data-root", "."})));  // the files are below it

  move_data("data", "elsewhere");
  const Completed lost = program.run({"evaluate", "run", "--data-root", "elsewhere"});
  CHECK(lost.exit_code == 4);
  REQUIRE(has_warning(lost));
  CHECK_THAT(lost.err, ContainsSubstring("change the data's directory in 'run/job.txtpb'"));
  std::string saved = read_text(program / "run/job.txtpb");
  const std::string place = (program / "data").string();
  REQUIRE(saved.find(place) != std::string::npos);
  saved.replace(saved.find(place), place.size(), (program / "elsewhere").string());
  write_text(program / "run/job.txtpb", saved);
  CHECK(program.run({"evaluate", "run"}).exit_code == 0);
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

TEST_CASE("sparse: hogwild on ratings trains, and its model is evaluated, predicts and is exported") {
  const Program program;
  write_ratings(program / "ratings");
  const std::string job = Program::config("matrix-factorization-hogwild");
  const std::vector<std::string> train{"train",    job,   "--data-root", ".",
                                       "--output", "run", "--set",       "learners.per_device.fixed=2"};
  const Completed trained = program.run(train);
  INFO(trained.err);
  CHECK(trained.exit_code == 0);
  CHECK_THAT(trained.err, ContainsSubstring("hogwild: single ratings, one shared model"));
  CHECK_THAT(trained.err,
             ContainsSubstring("12,000 training ratings and 3,000 test ratings of 200 users and 120 items"));
  const auto summary = summary_of(program / "run");
  CHECK(summary["test_rmse"].get<double>() < 0.31);
  CHECK_FALSE(summary.contains("test_accuracy"));
  const Completed evaluate = program.run({"evaluate", "run", "--data-root", ".", "--json"});
  CHECK(evaluate.exit_code == 0);
  CHECK(nlohmann::json::parse(evaluate.out)["test_rmse"] == summary["test_rmse"]);
  const Completed predict = program.run({"predict", "run", "ratings/test_ids.npy"});
  INFO(predict.err);
  CHECK(predict.exit_code == 0);
  CHECK(std::ranges::count(predict.out, '\n') == 3000);
  CHECK(program.run({"export", "run", "--output", "x.onnx"}).exit_code == 0);
  CHECK(program.run({"data", "verify", job, "--data-root", "."}).exit_code == 0);
  CHECK(program.run({"inspect", job}).exit_code == 3);
}
