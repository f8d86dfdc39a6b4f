// Training on a GPU that is too small for the usual number of learners.
#include <filesystem>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "learners/inference_runner.h"
#include "options/loading/load_job.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/small_training.h"
#include "tests/support/source_directory.h"
#include "train/inspection.h"
#include "train/session/session.h"
#include "train/train.h"

namespace {

using namespace arbalest;

// A learner takes 40 MiB, of which 37 are for libraries and recordings. Two learners fit, four do not.
constexpr std::size_t kSmallCard = std::size_t{120} << 20U;

// The estimate's reserve for the recordings of a learner. Their size is known only after recording.
constexpr std::size_t kGraphRoom = std::size_t{2} << 20U;

constexpr std::size_t kOwnHandles = std::size_t{3} << 20U;  // one pair of the stand-in's handles

jobs::JobOptions logistic(std::vector<std::string> overrides) {
  overrides.insert(overrides.end(),
                   {"devices=cuda:0", "training.batch_size=1000", "training.max_epochs=1", "training.seed=3"});
  return jobs::load_job(tests::source_directory() + "/configs/logistic-digits.txtpb", overrides);
}

class Listener final : public jobs::RunObserver {
 public:
  void on_start(const jobs::RunStart& start) override { start_ = start; }
  void on_progress(const jobs::RunProgress&) override {}
  void on_epoch(const jobs::EpochRow& row) override { row_ = row; }
  void on_finish(const jobs::RunSummary&) override {}

  jobs::RunStart start_;
  jobs::EpochRow row_;
};

}  // namespace

TEST_CASE("if the default learners do not fit on a GPU, the run continues with fewer and a warning", "[training]") {
  tests::cuda_stand_in::reset({.memory = kSmallCard});
  Listener listener;
  jobs::RunContext context;
  context.observers = {&listener};
  const jobs::JobOptions job = logistic({});
  REQUIRE(job.learners_per_device == std::vector<int>{4});
  const jobs::RunSummary summary = jobs::train(job, context);
  CHECK(summary.status == jobs::RunStatus::kCompleted);
  CHECK(summary.learners == 2);
  CHECK(listener.start_.learners_per_device == std::vector<int>{2});
  CHECK(listener.row_.learners_per_device == std::vector<int>{2});
  REQUIRE_FALSE(listener.start_.warnings.empty());
  CHECK_THAT(listener.start_.warnings[0], Catch::Matchers::Contains("2 learners on each device instead of 4"));
  CHECK_THAT(listener.start_.job_text, Catch::Matchers::Contains("fixed: 2"));
  CHECK(jobs::dry_run(job, {}).warnings == listener.start_.warnings);
  CHECK_FALSE(std::filesystem::exists("checkpoints"));  // the run has no directory
  CHECK_FALSE(std::filesystem::exists("best.safetensors"));
  tests::cuda_stand_in::require_clean();
}

TEST_CASE("a number of learners that the user gave is not changed", "[training]") {
  tests::cuda_stand_in::reset({.memory = kSmallCard});
  const jobs::JobOptions job = logistic({"learners.per_device.fixed=4"});
  try {
    jobs::train(job, {});
    FAIL("four learners fit");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kOutOfMemory);
    CHECK_THAT(error.what(), Catch::Matchers::Contains("4 learners would take") &&
                                 Catch::Matchers::Contains(" of cuda:0 (") &&
                                 Catch::Matchers::Contains("2 learners on each device would fit"));
  }
  tests::cuda_stand_in::require_clean();
}

TEST_CASE("inspection shows GPU and host memory separately, and what does not fit", "[training]") {
  tests::cuda_stand_in::reset({.memory = kSmallCard});
  const jobs::Inspection inspection = jobs::inspect(logistic({}));
  CHECK(inspection.learners_that_fit == 2);
  CHECK(inspection.learner_bytes > std::int64_t{32} << 20U);
  CHECK(inspection.available_bytes <= static_cast<std::int64_t>(kSmallCard));
  REQUIRE(inspection.memory.size() == 2);
  CHECK(inspection.memory[0].name == "host memory");
  CHECK(inspection.memory[0].needed < std::int64_t{32} << 20U);
  CHECK(inspection.memory[1].name == "cuda:0");
  CHECK(inspection.memory[1].available == inspection.available_bytes);
  CHECK(inspection.memory[1].needed == inspection.device_bytes + 4 * inspection.learner_bytes);
  REQUIRE(inspection.warnings.size() == 1);
  CHECK_THAT(inspection.warnings[0], Catch::Matchers::Contains("does not fit") && Catch::Matchers::Contains("cuda:0"));
  tests::cuda_stand_in::require_clean();
}

TEST_CASE("a run needs memory for the learners before and after a change of the size of teams", "[training]") {
  constexpr std::size_t kTwelveLearners = std::size_t{420} << 20U;
  const auto open = [](const std::string& team) {
    tests::cuda_stand_in::reset({.memory = kTwelveLearners});
    jobs::JobOptions job = logistic(
        {"learners.per_device={schedule { step { at_batch: 0 learners: 8 } step { at_batch: 80 learners: 6 } }" + team +
         "}"});
    static_cast<void>(jobs::open_session(job, "", {}));
  };
  CHECK_NOTHROW(open(""));
  CHECK_NOTHROW(open(" team: 2"));  // 6 of the 8 learners go on
  // 8 learners in teams of 4, and 6 in teams of 3.
  CHECK_THROWS_WITH(open(" team: 4"), Catch::Matchers::Contains("14 learners (while their number changes"));
  tests::cuda_stand_in::require_clean();
}

TEST_CASE("inspection counts the learners that fit in the teams that they would have", "[training]") {
  constexpr std::size_t kSevenStreams = std::size_t{280} << 20U;
  const auto inspected = [](const std::string& team) {
    tests::cuda_stand_in::reset({.memory = kSevenStreams});
    return jobs::inspect(logistic({"learners.per_device={fixed: 8" + team + "}"}));
  };
  const jobs::Inspection alone = inspected("");
  const jobs::Inspection in_teams = inspected(" team: 4");
  CHECK(alone.team_that_fits == 1);
  CHECK(alone.learners_that_fit < 8);
  CHECK(alone.warnings.size() == 1);
  // Two streams instead of eight. What is left is room for more teams of four, and not for streams of fewer learners.
  CHECK(in_teams.team == 4);
  CHECK(in_teams.warnings.empty());
  CHECK(alone.learner_bytes - in_teams.learner_bytes > std::int64_t{24} << 20U);
  CHECK(in_teams.memory[1].needed == in_teams.device_bytes + 8 * in_teams.learner_bytes);
  CHECK(in_teams.learners_that_fit > 8);
  CHECK(in_teams.learners_that_fit % in_teams.team_that_fits == 0);
  // That many do train, in these teams.
  const auto opens = [&](int learners, int team) {
    tests::cuda_stand_in::reset({.memory = kSevenStreams});
    jobs::JobOptions job =
        logistic({"learners.per_device={fixed: " + std::to_string(learners) + " team: " + std::to_string(team) + "}"});
    static_cast<void>(jobs::open_session(job, "", {}));
  };
  CHECK_NOTHROW(opens(in_teams.learners_that_fit, in_teams.team_that_fits));
  CHECK_THROWS_AS(opens(in_teams.learners_that_fit + 4, 4), engine::Error);
  tests::cuda_stand_in::require_clean();
}

TEST_CASE("a runner of a model takes the GPU memory that was estimated", "[training]") {
  tests::cuda_stand_in::reset();
  const auto device = engine::open_device(engine::parse_device("cuda:0"));
  const dataflow::Graph graph = dataflow::Graph::build(dataflow::image_input({2, 6, 6}, 3), tests::small_network());
  const learners::InferenceModel model(graph, *device, {.batch = 4});
  const std::size_t estimate = model.runner_bytes();
  const std::size_t before = device->free_memory();
  const learners::InferenceRunner runner(model);
  const std::size_t taken = before - device->free_memory();
  CHECK(taken <= estimate);
  CHECK(estimate - taken <= kGraphRoom);
}

TEST_CASE("the estimate of GPU memory agrees with a session of any scheme, plus a reserve for recordings",
          "[training]") {
  for (const std::string synchronization :
       {"sma {}", "ea_sgd { period: 2 }", "s_sgd { bucket_mb: 0.01 }", "local_sgd { period: 2 local_state: AVERAGE }",
        "bmuf { period: 2 nesterov: true }", "diloco { period: 2 }", "lookahead { period: 2 }", "swap {}",
        "sma {} switch { at_epoch: 0.5 s_sgd {} }"}) {
    for (const std::string learners : {"fixed: 1", "fixed: 2", "auto { max: 2 }", "fixed: 4 team: 2"}) {
      CAPTURE(synchronization, learners);
      tests::cuda_stand_in::reset();
      jobs::JobOptions job =
          logistic({"learners.per_device={" + learners + "}", "synchronization={" + synchronization + "}"});
      const jobs::Inspection inspection = jobs::inspect(job);
      const auto device = engine::open_device(job.devices[0]);
      const std::size_t before = device->free_memory();
      const auto session = jobs::open_session(job, "", {});
      const auto needed = static_cast<std::size_t>(inspection.memory[1].needed);
      // The estimate does not include the handles that the session's device uses for queries.
      const std::size_t taken = before - device->free_memory() - kOwnHandles;
      const auto count = static_cast<std::size_t>(job.learners_per_device.front());
      CHECK(taken <= needed);
      CHECK(needed - taken < count * kGraphRoom);
    }
  }
}
