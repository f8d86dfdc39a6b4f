// The number of learners of a GPU changes. The stand-in of CUDA's libraries can test more than a GPU: any order of
// streams, and running out of memory at any point.
#include <algorithm>
#include <atomic>

#include "engine/base/error.h"
#include "options/loading/load_job.h"
#include "tests/cuda/resizing.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/source_directory.h"
#include "train/learners/tuned_changes.h"
#include "train/session/session.h"
#include "train/train.h"

namespace arbalest::tests {

namespace {

constexpr const char* kAllocate = "cudaMallocAsync";

// Makes an allocation fail after the run has begun, and stops the run when it reports the failure.
class Fault final : public jobs::RunObserver {
 public:
  void on_start(const jobs::RunStart& /*start*/) override {
    cuda_stand_in::fail_next(kAllocate, cudaErrorMemoryAllocation);
  }
  void on_progress(const jobs::RunProgress& /*progress*/) override {}
  void on_epoch(const jobs::EpochRow& /*row*/) override {}
  void on_resize(const jobs::ResizeRow& row) override {
    rows.push_back(row);
    if (row.batch > 0) stop_signal = 15;
  }
  void on_finish(const jobs::RunSummary& /*summary*/) override {}

  std::vector<jobs::ResizeRow> rows;
  std::atomic<int> stop_signal = 0;
};

jobs::JobOptions tuned_job(const std::string& bounds = "max: 4") {
  return jobs::load_job(source_directory() + "/configs/logistic-digits.txtpb",
                        std::vector<std::string>{"devices=cuda:0", "training.max_epochs=1000", "training.kernels=FIXED",
                                                 "learners.per_device.auto={" + bounds + "}"});
}

// Opens the job's session on a GPU where the allocation after `passing` others fails, even if memory is reported as
// free. Returns false if there were fewer allocations.
bool open_where_memory_ends(jobs::JobOptions& job, int passing) {
  cuda_stand_in::reset();
  cuda_stand_in::fail_next(kAllocate, cudaErrorMemoryAllocation, passing);
  const std::size_t warnings = job.warnings.size();
  jobs::open_session(job, "", {});
  cuda_stand_in::require_clean();
  return job.warnings.size() > warnings;
}

}  // namespace

TEST_CASE("a GPU whose learners change gives the same bytes for any order of its streams", "[training][resize]") {
  const RigOptions options = resizable_on("cuda:0");
  const Trained expected = train_through(options, kSizes);
  for (std::uint64_t seed = 2; seed <= 10; ++seed) {
    cuda_stand_in::reset({}, seed);
    check_equal(train_through(options, kSizes), expected);
    cuda_stand_in::require_clean();
  }
}

TEST_CASE("removed learners free their GPU memory", "[training][resize]") {
  TrainingRig rig(resizable_on("cuda:0"));
  const engine::Device& device = rig.pools().front()->device();
  const auto resize_through = [&](int times) {
    for (int i = 0; i < times; ++i) {
      rig.resize(kSizes[static_cast<std::size_t>(i) % kSizes.size()]);
      rig.pools().front()->release_idle();
      rig.run(1);
    }
  };
  resize_through(static_cast<int>(kSizes.size()));
  const std::size_t free_bytes = device.free_memory();
  resize_through(10 * static_cast<int>(kSizes.size()));
  CHECK(device.free_memory() == free_bytes);
}

TEST_CASE("idle learners are freed before others are prepared", "[training][resize]") {
  TrainingRig rig(resizable_on("cuda:0"));
  const engine::Device& device = rig.pools().front()->device();
  rig.resize({2});
  rig.run(1);
  rig.pools().front()->release_idle();
  const std::size_t of_two = device.free_memory();
  rig.resize({4});
  rig.resize({1});
  CHECK(device.free_memory() < of_two);  // four learners still exist
  rig.resize({2});
  CHECK(device.free_memory() == of_two);
}

TEST_CASE("a finished search frees the memory of learners that it did not choose", "[training][resize]") {
  cuda_stand_in::reset();
  jobs::JobOptions job = tuned_job();
  const auto device = engine::open_device(engine::parse_device("cuda:0"));
  const auto session = jobs::open_session(job, "", {});
  scheduler::Scheduler& scheduler = session->scheduler();
  const std::size_t of_one_learner = device->free_memory();
  {
    jobs::TunedChanges changes(job, *session, {});
    int most = 1;
    const auto train = [&] {
      if (const auto change = changes.due(scheduler.batches())) session->resize(change->to, change->team);
      scheduler::Progress progress = scheduler.advance(session->training_ring(), 1);
      progress.add(scheduler.drain());
      most = std::max(most, scheduler.learners());
      changes.observe(progress, static_cast<double>(progress.examples) * scheduler.learners());
    };
    while (!changes.is_settled()) train();
    train();
    CHECK(most > 1);
    CHECK(scheduler.learners() == 1);
  }
  CHECK(device->free_memory() == of_one_learner);
}

TEST_CASE("a GPU that runs out of memory at any point of growing continues training unchanged", "[training][resize]") {
  const RigOptions options = resizable_on("cuda:0");
  const Trained expected = train_through(options, {{2}, {2}});
  int failures = 0;
  for (bool grown = false; !grown; ++failures) {
    CAPTURE(failures);
    REQUIRE(failures < 200);
    cuda_stand_in::reset();
    {
      TrainingRig rig(options);
      rig.resize({2});
      const double loss = rig.run(3).sums.loss();
      cuda_stand_in::fail_next(kAllocate, cudaErrorMemoryAllocation, failures);
      try {
        rig.pools().front()->prepare(4);
        grown = true;
      } catch (const engine::Error& error) {
        CHECK(error.kind() == engine::ErrorKind::kOutOfMemory);
        Trained trained = train_through(rig, {{2}});
        trained.loss += loss;
        check_equal(trained, expected);
      }
    }
    cuda_stand_in::require_clean();
  }
  cuda_stand_in::reset();  // the last failure did not occur
  CHECK(failures > 6);     // weights, gradients, momenta, arenas and workspaces of two learners
}

TEST_CASE("if a GPU has no memory for another learner, a tuned run continues and says so", "[training][resize]") {
  Fault fault;
  jobs::RunContext context;
  context.observers = {&fault};
  context.stop_signal = &fault.stop_signal;
  const jobs::RunSummary summary = jobs::train(tuned_job(), context);
  CHECK(summary.status == jobs::RunStatus::kStopped);
  REQUIRE(fault.rows.size() == 2);
  CHECK(fault.rows[0].to == std::vector<int>{2});  // start of a search without a guess
  CHECK(fault.rows[1].from == std::vector<int>{2});
  CHECK(fault.rows[1].to == std::vector<int>{2});
  CHECK_THAT(fault.rows[1].reason, ContainsSubstring("4 learners do not fit in memory: back to 2 learners") &&
                                       ContainsSubstring("cuda:0: cannot allocate"));
  CHECK(summary.learners == 2);
  cuda_stand_in::require_clean();
}

TEST_CASE("a tuned job that runs out of memory at the start halves its maximum and says so", "[training][resize]") {
  int halved = 0;
  for (int passing = 0;; ++passing) {
    CAPTURE(passing);
    jobs::JobOptions job = tuned_job();
    if (!open_where_memory_ends(job, passing)) break;
    const std::string& warning = job.warnings.back();
    if (warning.find("stay in host memory") != std::string::npos) continue;  // the dataset's allocation
    ++halved;
    CHECK(job.tuned->max == 2);
    CHECK_THAT(warning, ContainsSubstring("at most 2 learners on each device instead of 4: ") &&
                            ContainsSubstring("cuda:0: cannot allocate"));
  }
  cuda_stand_in::reset();  // the last failure did not occur
  CHECK(halved > 6);       // z twice, its sum, weights, gradients, momenta and arenas
}

TEST_CASE("the maximum is not lowered below the minimum number of learners", "[training][resize]") {
  constexpr int kBehindData = 10;  // after the allocations of the datasets, which could stay in host memory
  jobs::JobOptions above = tuned_job("min: 3 max: 4");
  REQUIRE(open_where_memory_ends(above, kBehindData));
  CHECK(above.tuned->max == 3);
  jobs::JobOptions equal = tuned_job("min: 4 max: 4");
  CHECK_THROWS_WITH(open_where_memory_ends(equal, kBehindData), ContainsSubstring("cuda:0: cannot allocate"));
  CHECK(equal.tuned->max == 4);
}

}  // namespace arbalest::tests
