// Whole runs with every synchronization scheme: what they save, where they stop, and how they replay.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>

#include "report/run_directory.h"
#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/npy_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"
#include "train/session/session.h"
#include "train/train.h"

namespace arbalest::tests {

namespace {

using jobs::RunStatus;
using jobs::RunSummary;

// Two learners of a linear model on the digits: 625 mini-batches an epoch.
jobs::JobOptions job_with(const std::string& synchronization, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"devices=cpu", "training.batch_size=32", "training.max_epochs=1",
                             "learners.per_device.fixed=2", "synchronization={" + synchronization + "}"});
  return load("logistic-digits.txtpb", more);
}

// Records a run's switches, and ends the run after its first step if asked to.
class Listener final : public jobs::RunObserver {
 public:
  explicit Listener(bool stops = false) : stops_(stops) {}

  void on_start(const jobs::RunStart& /*start*/) override {}
  void on_progress(const jobs::RunProgress& /*progress*/) override {
    if (stops_) stop_signal = SIGINT;
  }
  void on_epoch(const jobs::EpochRow& row) override { rows.push_back(row); }
  void on_switch(const jobs::SwitchRow& row) override { switches.push_back(row); }
  void on_finish(const RunSummary& /*summary*/) override {}

  std::vector<jobs::EpochRow> rows;
  std::vector<jobs::SwitchRow> switches;
  std::atomic<int> stop_signal = 0;

 private:
  bool stops_;
};

RunSummary run_into(const jobs::JobOptions& job, const std::filesystem::path& path, Listener& listener) {
  jobs::RunDirectory directory(path, job.name);
  jobs::RunContext context;
  context.output_directory = path.string();
  context.observers = {&directory, &listener};
  context.stop_signal = &listener.stop_signal;
  return jobs::train(job, context);
}

std::vector<dataflow::NamedTensor> saved(const std::filesystem::path& run, const RunSummary& summary) {
  return jobs::read_safetensors((run / "model.safetensors").string(), summary.model_sha256);
}

void check_same(const std::vector<dataflow::NamedTensor>& a, const std::vector<dataflow::NamedTensor>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(a[i].name);
    CHECK(a[i].values == b[i].values);
  }
}

// The model after `steps` steps of each learner.
std::vector<dataflow::NamedTensor> model_after(jobs::JobOptions job, int steps) {
  const auto session = jobs::open_session(job, "", {});
  session->scheduler().advance(session->training_ring(), steps);
  session->scheduler().drain();
  return session->scheduler().snapshot();
}

}  // namespace

TEST_CASE("with every scheme, the saved model evaluates to the reported result, also within a round", "[training]") {
  // An epoch is 313 steps for two learners.
  for (const std::string scheme :
       {"sma {}", "ea_sgd { period: 4 }", "s_sgd { bucket_mb: 0.01 }", "local_sgd { period: 7 }",
        "local_sgd { period: 7 local_state: AVERAGE }", "local_sgd { period: 2 qsr: 0.1 }", "bmuf { period: 20 }",
        "slow_mo { period: 20 }", "diloco { period: 60 rate: 0.3 momentum: 0.5 }", "lookahead { period: 6 }", "swap {}",
        "s_sgd {} switch { at_epoch: 0.3 diloco { period: 100 rate: 0.3 momentum: 0.5 } } switch { at_epoch: 0.9 swap "
        "{} }"}) {
    CAPTURE(scheme);
    const TemporaryDirectory directory;
    const jobs::JobOptions job = job_with(scheme);
    const RunSummary summary = run(job, directory.path().string());
    CHECK(summary.status == RunStatus::kCompleted);
    CHECK(summary.test.value("accuracy").value() > 0.6);
    const std::string model = (directory.path() / "model.safetensors").string();
    const jobs::EvaluationResult again = jobs::evaluate_run(job, model, summary.model_sha256, {});
    CHECK(again.scores.value("accuracy") == summary.test.value("accuracy"));
    CHECK(again.scores.value("top5_accuracy") == summary.test.value("top5_accuracy"));
    CHECK(again.scores.value("loss") == summary.test.value("loss"));
    CHECK(run(job, "").test.value("loss") == summary.test.value("loss"));
  }
}

TEST_CASE("a mean that is saved in the middle of a round has its own batch norm statistics", "[training]") {
  for (const std::string scheme : {"local_sgd { period: 7 }", "swap {}", "s_sgd {}"}) {
    CAPTURE(scheme);
    const TemporaryDirectory directory;
    const jobs::JobOptions job = load(
        "convnet-digits.txtpb",
        {"devices=cpu", "training.max_epochs=1", "learners.per_device.fixed=2", "synchronization={" + scheme + "}"});
    const RunSummary summary = run(job, directory.path().string());
    const std::string model = (directory.path() / "model.safetensors").string();
    const jobs::EvaluationResult again = jobs::evaluate_run(job, model, summary.model_sha256, {});
    CHECK(again.scores.value("accuracy") == summary.test.value("accuracy"));
    CHECK(again.scores.value("loss") == summary.test.value("loss"));
  }
}

TEST_CASE("a run that is stopped within a long round ends after the step and saves the learners' mean", "[training]") {
  const TemporaryDirectory directory;
  const jobs::JobOptions job = job_with("diloco { period: 312 }");
  Listener listener(true);
  const RunSummary summary = run_into(job, directory.path() / "run", listener);
  CHECK(summary.status == RunStatus::kStopped);
  CHECK(summary.message.starts_with("stopped by SIGINT after "));
  REQUIRE(summary.examples > 0);
  CHECK(summary.examples % (2 * 32) == 0);
  const auto steps = static_cast<int>(summary.examples / (2 * 32));
  REQUIRE(steps < 312);
  // Until the first round ends, learners train alone, so the mean is that of swap.
  check_same(saved(directory.path() / "run", summary), model_after(job_with("swap {}"), steps));
  const jobs::EvaluationResult again =
      jobs::evaluate_run(job, (directory.path() / "run/model.safetensors").string(), summary.model_sha256, {});
  CHECK(again.scores.value("accuracy") == summary.test.value("accuracy"));
}

TEST_CASE("a run that diverges saves the last finite weights with every scheme", "[training]") {
  for (const std::string scheme :
       {"sma {}", "ea_sgd { period: 3 }", "s_sgd {}", "local_sgd { period: 7 }",
        "bmuf { period: 2 local_state: AVERAGE }", "diloco { period: 3 momentum: 0.6 }", "swap {}"}) {
    for (const std::string rate : {"30", "1000"}) {  // one gives non-finite steps, the other non-finite losses
      CAPTURE(scheme, rate);
      const TemporaryDirectory directory;
      Listener listener;
      const RunSummary summary = run_into(
          job_with(scheme, {"model={ zoo { lenet {} } }", "learning_rate={ with_learners: KEEP base: " + rate + " }"}),
          directory.path() / "run", listener);
      CHECK(summary.status == RunStatus::kDiverged);
      for (const dataflow::NamedTensor& tensor : saved(directory.path() / "run", summary)) {
        INFO(tensor.name);
        CHECK(std::ranges::all_of(tensor.values, [](float value) { return std::isfinite(value); }));
      }
    }
  }
}

TEST_CASE("an asynchronous run that diverges is advised about momentum, learners and staleness", "[training]") {
  const auto message_of = [](const std::string& scheme) {
    const TemporaryDirectory directory;
    Listener listener;
    return run_into(
               job_with(scheme, {"model={ zoo { lenet {} } }", "learning_rate={ base: 1000 with_learners: KEEP }"}),
               directory.path() / "run", listener)
        .message;
  };
  CHECK_THAT(message_of("async_sgd { scale_by_staleness: false }"),
             ContainsSubstring("or the optimizer's momentum 0.9") && ContainsSubstring("fewer learners (2 that") &&
                 ContainsSubstring("async_sgd.scale_by_staleness"));
  CHECK_THAT(message_of("hogwild {}"), ContainsSubstring("or the optimizer's momentum 0.9") &&
                                           ContainsSubstring("fewer learners (2 that") &&
                                           !ContainsSubstring("staleness"));
  CHECK_THAT(message_of("s_sgd {}"), ContainsSubstring("lower learning_rate.base") && !ContainsSubstring("momentum"));
}

TEST_CASE("a first loss that is not finite is blamed on the steps with hogwild only", "[training]") {
  const auto message_of = [](const std::string& scheme) {
    const TemporaryDirectory directory;
    Listener listener;
    jobs::JobOptions job = job_with(scheme, {"model={ zoo { logistic_regression {} } }"});
    job.data.normalization.mean = {std::numeric_limits<float>::quiet_NaN()};
    return run_into(job, directory.path() / "run", listener).message;
  };
  CHECK_THAT(message_of("hogwild {}"), ContainsSubstring("mini-batch ") &&
                                           ContainsSubstring("check the initial values") &&
                                           ContainsSubstring("fewer learners (2 that"));
  CHECK_THAT(message_of("s_sgd {}"), ContainsSubstring("mini-batch 0 ") &&
                                         ContainsSubstring("check the initial values") &&
                                         !ContainsSubstring("learning_rate"));
}

TEST_CASE("a run switches at the first step at or after the epoch, and is repeatable", "[training]") {
  const TemporaryDirectory directory;
  const jobs::JobOptions job = job_with(
      "s_sgd {} switch { at_epoch: 0.25 local_sgd { period: 100 } } switch { at_epoch: 0.5 learners: 1 "
      "with_learners: KEEP lookahead {} }",
      {"learning_rate.with_learners=LINEAR"});
  std::vector<std::string> models;
  for (const std::string name : {"first", "second"}) {
    Listener listener;
    const RunSummary summary = run_into(job, directory.path() / name, listener);
    CHECK(summary.status == RunStatus::kCompleted);
    CHECK(summary.examples == 625 * 32);  // a single learner stops at the end of the epoch
    CHECK(summary.learners_per_device == std::vector<int>{1});
    REQUIRE(listener.switches.size() == 2);
    CHECK(listener.switches[0].batch == 158);  // 156.25, in steps of two
    CHECK(listener.switches[0].from == "s_sgd");
    CHECK(listener.switches[0].to == "local_sgd");
    CHECK(listener.switches[0].learners_per_device == std::vector<int>{2});
    CHECK(listener.switches[1].batch == 314);
    CHECK(listener.switches[1].epoch == 314 / 625.0);
    CHECK(listener.switches[1].from == "local_sgd");
    CHECK(listener.switches[1].to == "lookahead");
    CHECK(listener.switches[1].learners_per_device == std::vector<int>{1});
    REQUIRE(listener.rows.size() == 1);
    CHECK(listener.rows[0].learning_rate == Approx(job.learning_rate.base));  // no longer twice that
    models.push_back(summary.model_sha256);
  }
  CHECK(models[0] == models[1]);
  // The job file in the run's directory trains the same model.
  Listener listener;
  const jobs::JobOptions again = jobs::load_job((directory.path() / "first/job.txtpb").string());
  CHECK(run_into(again, directory.path() / "third", listener).model_sha256 == models[0]);
}

TEST_CASE("a run whose learners are searched counts the switches that had no effect", "[training]") {
  // Rounds of one learner have 100 mini-batches: the last of the 625 begins at 600, which is epoch 0.96.
  for (const auto& [switches, unused] : std::vector<std::pair<std::string, int>>{
           {"switch { at_epoch: 0.95 swap {} }", 0},
           {"switch { at_epoch: 0.97 swap {} }", 1},
           {"switch { at_epoch: 0.9 swap {} } switch { at_epoch: 0.95 s_sgd {} }", 1},
           {"switch { at_epoch: 0.9 swap {} } switch { at_epoch: 0.95 s_sgd {} } switch { at_epoch: 0.999 swap {} }",
            2}}) {
    CAPTURE(switches);
    Listener listener;
    const TemporaryDirectory directory;
    const jobs::JobOptions job =
        load("logistic-digits.txtpb",
             {"devices=cpu", "training.batch_size=32", "training.max_epochs=1", "learners.per_device.auto={max: 1}",
              "synchronization={sma { period: 100 } " + switches + "}"});
    const RunSummary summary = run_into(job, directory.path() / "run", listener);
    CHECK(summary.status == RunStatus::kCompleted);
    CHECK(summary.unused_switches == unused);
  }
}

TEST_CASE("a schedule of learners continues after switches to schemes with other iterations", "[training]") {
  const TemporaryDirectory directory;
  const auto job = [&](int at) {
    return load("logistic-digits.txtpb",
                {"devices=cpu", "training.batch_size=32", "training.max_epochs=1",
                 fmt::format("learners.per_device.schedule={{ step {{ learners: 2 }} step {{ at_batch: 100 learners: 3 "
                             "}} step {{ at_batch: {} learners: 1 }} }}",
                             at),
                 "synchronization={ s_sgd {} switch { at_epoch: 0.5 ea_sgd { period: 4 } } }"});
  };
  // 71 steps of three learners precede mini-batch 313; iterations of twelve follow.
  CHECK_THROWS_WITH(job(400), ContainsSubstring("did you mean 397 or 409?"));
  const RunSummary summary = run(job(409));
  CHECK(summary.status == RunStatus::kCompleted);
  CHECK(summary.learners_per_device == std::vector<int>{1});
  CHECK(run(job(409)).test.value("loss") == summary.test.value("loss"));
}

TEST_CASE("rounds and schedules that do not fit the data are refused once the files are read", "[training]") {
  // An epoch of the sixty images has fifteen mini-batches.
  const TemporaryDirectory directory;
  for (const std::string split : {"train", "test"}) {
    write_text(directory / (split + "_images.npy"), npy("|u1", "60, 4, 5", std::string(60 * 4 * 5, 'x')));
    write_text(directory / (split + "_labels.npy"), npy("|u1", "60,", std::string(60, '\1')));
  }
  const auto open = [&](const std::string& learners, const std::string& synchronization) {
    jobs::JobOptions job = parse(fmt::format(
        "model {{ zoo {{ logistic_regression {{}} }} }} data {{ npy {{ directory: '{}' classes: 3 height: 4 width: 5 "
        "channels: 1 }} }}\ntraining {{ batch_size: 4 max_epochs: 3 }} learning_rate {{ base: 0.01 }} devices: 'cpu'\n"
        "learners {{ per_device {{ {} }} }} synchronization {{ {} }}",
        directory.path().string(), learners, synchronization));
    jobs::open_session(job, "", {});
  };
  CHECK_THROWS_WITH(
      open("fixed: 2", "local_sgd { period: 8 }"),
      ContainsSubstring("a round of 2 learners with period 8 needs 16 mini-batches, but an epoch has 15"));
  CHECK_THROWS_WITH(open("fixed: 2", "switch { at_epoch: 1 diloco {} }"),
                    ContainsSubstring("a round of 2 learners with period 500 needs"));
  CHECK_NOTHROW(open("fixed: 2", "switch { at_epoch: 1 learners: 1 local_sgd { period: 15 } }"));
  CHECK_NOTHROW(open("fixed: 2", "switch { at_epoch: 1 swap {} }"));
  // From mini-batch 16 on, iterations have six mini-batches.
  const std::string schemes = "s_sgd {} switch { at_epoch: 1 sma { period: 3 } }";
  CHECK_NOTHROW(open("schedule { step { learners: 2 } step { at_batch: 22 learners: 1 } }", schemes));
  CHECK_THROWS_WITH(open("schedule { step { learners: 2 } step { at_batch: 24 learners: 1 } }", schemes),
                    ContainsSubstring("24 lies within one; did you mean 22 or 28?"));
}

TEST_CASE("the record of a tuned run with a switch replays the run", "[training]") {
  const TemporaryDirectory directory;
  for (const std::string schemes :
       {"s_sgd {} switch { at_epoch: 0.5 sma { period: 3 } }", "sma { period: 3 } switch { at_epoch: 0.5 s_sgd {} }"}) {
    CAPTURE(schemes);
    const jobs::JobOptions job =
        load("logistic-digits.txtpb", {"devices=cpu", "training.batch_size=8", "training.max_epochs=1",
                                       "learners.per_device.auto={max: 3}", "synchronization={" + schemes + "}"});
    const std::string name = job.synchronization.scheme == sma::Scheme::kSma ? "sma" : "s_sgd";
    Listener listener;
    const RunSummary summary = run_into(job, directory.path() / name, listener);
    CHECK(summary.status == RunStatus::kCompleted);
    CHECK(listener.switches.size() == 1);
    const std::filesystem::path replay = directory.path() / name / "replay.txtpb";
    REQUIRE(std::filesystem::exists(replay));
    Listener again;
    const RunSummary replayed = run_into(jobs::load_job(replay.string()), directory.path() / (name + "-again"), again);
    CHECK(replayed.model_sha256 == summary.model_sha256);
    REQUIRE(again.switches.size() == 1);
    CHECK(again.switches[0].batch == listener.switches[0].batch);
  }
}

TEST_CASE("asynchronous runs learn, log their staleness and save what they evaluated", "[training]") {
  for (const std::string bound : {"staleness: 1", ""}) {
    for (const int push_every : {1, 4}) {
      for (const int learners : {2, 4}) {
        CAPTURE(bound, push_every, learners);
        const TemporaryDirectory directory;
        const jobs::JobOptions job =
            job_with(fmt::format("async_sgd {{ {} push_every: {} warm_start_epochs: 0.2 }}", bound, push_every),
                     {fmt::format("learners.per_device.fixed={}", learners), "training.max_epochs=2",
                      "learning_rate.with_learners=KEEP", "optimizer.sgd.momentum=0", "learning_rate.base=0.03"});
        Listener listener;
        const RunSummary summary = run_into(job, directory.path() / "run", listener);
        CHECK(summary.status == RunStatus::kCompleted);
        CHECK(summary.test.value("accuracy").value() > 0.5);
        const jobs::EvaluationResult again =
            jobs::evaluate_run(job, (directory.path() / "run/model.safetensors").string(), summary.model_sha256, {});
        CHECK(again.scores.value("accuracy") == summary.test.value("accuracy"));
        CHECK(again.scores.value("loss") == summary.test.value("loss"));
        REQUIRE(listener.switches.size() == 1);
        CHECK(listener.switches[0].from == "s_sgd");
        CHECK(listener.switches[0].to == "async_sgd");
        REQUIRE(listener.rows.size() == 2);
        sma::StalenessCounts sum;
        for (const jobs::EpochRow& row : listener.rows) {
          sma::add(sum, row.staleness);
          CHECK_FALSE(row.replica_distance);  // nothing measures it
          CHECK_FALSE(row.replica_spread);
        }
        CHECK(sum == summary.staleness);
        std::uint64_t pushes = 0;
        for (const auto& [staleness, count] : sum) pushes += static_cast<std::uint64_t>(count);
        CHECK(pushes * static_cast<std::uint64_t>(push_every) + listener.switches[0].batch == summary.mini_batches);
        if (!bound.empty()) CHECK(sum.rbegin()->first <= 3 * (learners - 1));
      }
    }
  }
}

TEST_CASE("an asynchronous run with staleness 0 trains the model of s_sgd", "[training]") {
  const std::vector<std::string> settings = {"training.max_epochs=2", "learning_rate.with_learners=LINEAR"};
  const RunSummary expected = run(job_with("s_sgd {}", settings));
  CHECK(run(job_with("async_sgd { staleness: 0 }", settings)).model_sha256 == expected.model_sha256);
  CHECK(run(job_with("async_sgd { staleness: 0 }", settings)).test.value("loss") == expected.test.value("loss"));
}

TEST_CASE("with one learner an asynchronous run trains the model of any other scheme", "[training]") {
  const std::vector<std::string> settings = {"training.max_epochs=2", "learners.per_device.fixed=1"};
  const RunSummary expected = run(job_with("sma {}", settings));
  CHECK(run(job_with("async_sgd {}", settings)).test.value("loss") == expected.test.value("loss"));
}

}  // namespace arbalest::tests
