// Whole runs of delayed_proximal over several processes, whose worlds are in threads of the test program.
#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "options/loading/load_job.h"
#include "saved_model/safetensors.h"
#include "tests/jobs/job_text.h"
#include "tests/process/ranks.h"
#include "tests/support/sparse_data.h"
#include "tests/support/temporary_directory.h"
#include "train/processes/shared_job.h"
#include "train/train.h"

namespace arbalest::jobs {

namespace {

using engine::process::World;

struct Notes : RunObserver {
  void on_start(const RunStart& start) override { starts.push_back(start); }
  void on_progress(const RunProgress& /*progress*/) override {}
  void on_epoch(const EpochRow& row) override { epochs.push_back(row); }
  void on_warning(const std::string& text) override { warnings.push_back(text); }
  void on_finish(const RunSummary& summary) override { summaries.push_back(summary); }

  std::vector<RunStart> starts;
  std::vector<EpochRow> epochs;
  std::vector<std::string> warnings;
  std::vector<RunSummary> summaries;
};

// A process fails after its third epoch.
struct Failing final : Notes {
  void on_epoch(const EpochRow& row) override {
    if (row.epoch == 3) engine::fail(engine::ErrorKind::kDevice, "the core is broken");
  }
};

class SharedSparse {
 public:
  SharedSparse() {
    write("train.libsvm", tests::libsvm_text(tests::make_sparse_rows({}, 21)));
    write("test.libsvm", tests::libsvm_text(tests::make_sparse_rows({.rows = 150}, 22)));
    write("job.txtpb",
          "name: \"sparse\"\n"
          "model { sparse_logistic {} }\n"
          "data { libsvm { directory: \".\" features: 60 } }\n"
          "devices: \"cpu\"\n"
          "synchronization { delayed_proximal { l1: 0.004 blocks: 8 tolerance: 1e-7 } }\n");
  }

  void write(const std::string& name, const std::string& text) const { tests::write_text(root_ / name, text); }
  std::string root() const { return root_.path().string(); }
  bool has(const std::string& name) const { return std::filesystem::exists(root_ / name); }

  // The run of one of the processes. Rank 0 alone has the observer `notes`, and the others have `other`.
  RunSummary train(World& world, Notes& notes, const std::vector<std::string>& settings,
                   const std::atomic<int>* stop_signal = nullptr, RunObserver* other = nullptr) const {
    std::vector<std::string> all{"learners.per_device.fixed=1"};
    all.insert(all.end(), settings.begin(), settings.end());
    const JobOptions job = load_shared_job(world, (root_ / "job.txtpb").string(), all);
    RunContext context;
    context.world = &world;
    context.data_root = root();
    context.output_directory = root();
    context.stop_signal = stop_signal;
    if (world.rank() == 0) context.observers = {&notes};
    if (world.rank() != 0 && other != nullptr) context.observers = {other};
    return jobs::train(job, context);
  }

  // The messages of all ranks.
  std::vector<std::string> refused(const std::vector<std::string>& settings) const {
    return tests::messages_of_ranks(2, [&](World& world) {
      Notes notes;
      train(world, notes, settings);
    });
  }

 private:
  tests::TemporaryDirectory root_;
};

}  // namespace

TEST_CASE("sparse processes run: rank 0 reports and saves what all have found", "[processes]") {
  for (const int delay : {0, 2, 4}) {
    const std::vector<std::string> settings{fmt::format("synchronization.delayed_proximal.max_delay={}", delay)};
    double objective = 0.0;
    for (const int processes : {1, 2, 3}) {
      INFO(delay << " delayed blocks, " << processes << " processes");
      const SharedSparse run;
      Notes notes;
      std::vector<RunSummary> summaries(static_cast<std::size_t>(processes));
      tests::on_each_rank(processes, [&](World& world) {
        summaries[static_cast<std::size_t>(world.rank())] = run.train(world, notes, settings);
      });
      REQUIRE(notes.summaries.size() == 1);
      REQUIRE(notes.starts.size() == 1);
      const RunSummary& summary = notes.summaries[0];
      CHECK(summary.status == RunStatus::kCompleted);
      CHECK(summary.learners == processes);
      CHECK(std::cmp_equal(summary.devices.size(), processes));
      CHECK(notes.starts[0].learners_per_device == summary.learners_per_device);
      CHECK_THAT(notes.starts[0].data, ContainsSubstring("400 training rows") && ContainsSubstring("150 test rows"));
      CHECK(std::cmp_equal(notes.epochs.size(), summary.epochs));
      CHECK(notes.epochs.back().sparse->active_coordinates == 61);
      CHECK(summary.examples == 400 * std::int64_t{summary.epochs});
      if (processes == 1) objective = summary.sparse->objective;
      CHECK(summary.sparse->objective == Approx(objective).epsilon(delay == 0 ? 1e-6 : 1e-4));
      for (const RunSummary& of_rank : summaries) {
        CHECK(of_rank.status == summary.status);
        CHECK(of_rank.epochs == summary.epochs);
        CHECK(of_rank.sparse->objective == summary.sparse->objective);
        CHECK(of_rank.test.loss() == summary.test.loss());
        CHECK(of_rank.test.value("accuracy") == summary.test.value("accuracy"));
        CHECK(of_rank.model_sha256.empty() == (&of_rank != &summaries[0]));
      }
      CHECK(read_safetensors(run.root() + "/model.safetensors", summary.model_sha256).size() == 2);
    }
  }
}

TEST_CASE("sparse processes run: a signal to one ends all, and the model is saved", "[processes]") {
  const SharedSparse run;
  Notes notes;
  std::vector<RunSummary> summaries(2);
  tests::on_each_rank(2, [&](World& world) {
    const std::atomic<int> signal = world.rank() == 1 ? 15 : 0;
    summaries[static_cast<std::size_t>(world.rank())] = run.train(world, notes, {}, &signal);
  });
  for (const RunSummary& summary : summaries) {
    CHECK(summary.status == RunStatus::kStopped);
    CHECK(summary.stop_signal == 15);
    CHECK(summary.epochs == 0);
    CHECK_THAT(summary.message, ContainsSubstring("stopped by SIGTERM"));
  }
  CHECK(run.has("model.safetensors"));
}

TEST_CASE("sparse processes run: if another process fails, rank 0 saves the model that it has", "[processes]") {
  const SharedSparse run;
  Notes notes;
  Failing failing;
  std::vector<std::optional<engine::Error>> errors(2);
  const auto body = [&](World& world) {
    try {
      run.train(world, notes, {"synchronization.delayed_proximal.tolerance=0"}, nullptr, &failing);
    } catch (const engine::Error& error) {
      errors[static_cast<std::size_t>(world.rank())] = error;
    }
  };
  tests::errors_of_ranks(2, body, {.peer_timeout_seconds = 60.0}, [](World&, const char*) {});
  REQUIRE(errors[0]);
  CHECK(errors[0]->kind() == engine::ErrorKind::kPeer);
  REQUIRE(errors[1]);
  CHECK(errors[1]->kind() == engine::ErrorKind::kDevice);
  CHECK_THAT(errors[1]->what(), !ContainsSubstring("saved"));

  // Rank 0 may hear of the failure before it has the results of the third epoch.
  REQUIRE(notes.summaries.size() == 1);
  const RunSummary& summary = notes.summaries[0];
  CHECK(summary.status == RunStatus::kFailed);
  CHECK(summary.message == errors[0]->what());
  const bool has_third = summary.message.ends_with("the core is broken (the model of epoch 3 is saved)");
  INFO(summary.message);
  CHECK((has_third || summary.message.ends_with("the core is broken (the model of epoch 2 is saved)")));
  const JobOptions job = load_job(run.root() + "/job.txtpb");
  RunContext context;
  context.data_root = run.root();
  const EvaluationResult saved = evaluate_run(job, run.root() + "/model.safetensors", summary.model_sha256, context);
  CHECK(saved.scores.loss() == summary.test.loss());
  REQUIRE(notes.epochs.size() >= 2);
  CHECK(summary.epochs == (has_third ? 3 : 2));
  CHECK(notes.epochs[has_third ? 2 : 1].test.loss() == summary.test.loss());
  CHECK(notes.epochs[has_third ? 2 : 1].sparse->objective == summary.sparse->objective);
}

TEST_CASE("sparse processes run: an error before training is the same on all, so it is told once", "[processes]") {
  const SharedSparse run;
  const auto told = [&](const char* part) {
    const std::vector<std::string> messages = run.refused({});
    CHECK_THAT(messages[0], ContainsSubstring(part));
    CHECK(messages[1] == messages[0]);
    CHECK_FALSE(run.has("model.safetensors"));
  };
  run.write("test.libsvm", "+1 1:1\n-1 3:1 2:1\n");  // rank 0 alone reads it
  told("test.libsvm:2: feature number 2 does not ascend from 3");
  run.write("train.libsvm", "+1 1:1\n-1 61:1\n");
  told("train.libsvm:2: feature number 61 is beyond the 60 features of the model");
}

TEST_CASE("sparse processes run: all must have the same training rows", "[processes]") {
  const SharedSparse run;
  const SharedSparse other;
  other.write("train.libsvm", tests::libsvm_text(tests::make_sparse_rows({}, 20)));
  const std::vector<std::string> messages = tests::messages_of_ranks(2, [&](World& world) {
    Notes notes;
    (world.rank() == 0 ? run : other).train(world, notes, {});
  });
  CHECK_THAT(messages[0], ContainsSubstring("rank 1 on host here has other training rows than rank 0 on host here"));
  CHECK(messages[1] == messages[0]);
}

TEST_CASE("sparse processes run: hogwild is refused", "[processes]") {
  const SharedSparse run;
  const std::vector<std::string> messages = run.refused({"synchronization=hogwild{}", "learning_rate.base=0.1"});
  CHECK_THAT(messages[0], ContainsSubstring("synchronization.hogwild: the learners of hogwild share the memory of one "
                                            "process, and this run has 2 processes; start it without mpirun or srun"));
  CHECK(messages[1] == messages[0]);
}

TEST_CASE("sparse processes run: a dry run trains one epoch in all, and keeps nothing", "[processes]") {
  const SharedSparse run;
  std::vector<std::string> texts(2);
  tests::on_each_rank(2, [&](World& world) {
    const JobOptions job = load_shared_job(world, run.root() + "/job.txtpb", std::vector<std::string>{});
    RunContext context;
    context.world = &world;
    context.data_root = run.root();
    texts[static_cast<std::size_t>(world.rank())] = dry_run(job, context).text;
  });
  CHECK_THAT(texts[0], ContainsSubstring("sparse: one epoch trained (loss 0."));
  CHECK(texts[1] == texts[0]);
  CHECK_FALSE(run.has("model.safetensors"));
}

}  // namespace arbalest::jobs
