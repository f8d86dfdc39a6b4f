// Training on the stand-in of CUDA's libraries, which can test more than a GPU: any order of streams, and faults.
#include "engine/base/error.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/small_training.h"

namespace arbalest::tests {

TEST_CASE("a GPU gives the same bytes for any order of its streams", "[training]") {
  const RigOptions options = options_on({"cuda:0"}, {3});
  const Trained expected = train(options);
  for (std::uint64_t seed = 2; seed <= 20; ++seed) {
    cuda_stand_in::reset({}, seed);
    check_equal(train(options), expected);
    cuda_stand_in::require_clean();
  }
}

// Returns the number of works that the host thread enqueues per round after the warm-up.
std::uint64_t works_of_round(int learners, int team = 1, std::int64_t batch = 4) {
  RigOptions options = options_on({"cuda:0"}, {learners});
  options.team = team;
  options.batch = batch;
  options.examples = std::max<std::int64_t>(options.examples, 8 * batch);
  options.input = RigInput::kResident;
  TrainingRig rig(options);
  const auto works_of = [&rig](int rounds) {
    const std::uint64_t before = cuda_stand_in::enqueued_works();
    rig.run(rounds);
    return cuda_stand_in::enqueued_works() - before;
  };
  rig.run(8);
  const std::uint64_t copies_of_few = cuda_stand_in::calls("cudaMemcpyAsync");
  const std::uint64_t few = works_of(8);  // `few` and `many` both include the cost of one call of run()
  const std::uint64_t copies_of_many = cuda_stand_in::calls("cudaMemcpyAsync");
  const std::uint64_t many = works_of(24);
  // A round uses no copy engine.
  CHECK(cuda_stand_in::calls("cudaMemcpyAsync") - copies_of_many == copies_of_many - copies_of_few);
  CHECK((many - few) % 16 == 0);
  return (many - few) / 16;
}

TEST_CASE("a mini-batch from data on the device takes four host calls, or six with averaging", "[training]") {
  // The calls are: parameters and indices, gradient, update, result with the position.
  CHECK(works_of_round(1) == 4);
  // With averaging, each learner adds two waits: its update waits for averaging, and averaging waits for the update.
  // Averaging adds one kernel and one result per round.
  CHECK(works_of_round(2) == 2 * 6 + 2);
  CHECK(works_of_round(3) == 3 * 6 + 2);
}

TEST_CASE("a team takes the host calls of one learner", "[training]") {
  CHECK(works_of_round(8) == 8 * 6 + 2);
  CHECK(works_of_round(8, 8) == 6 + 2);
  CHECK(works_of_round(8, 4) == 2 * 6 + 2);
  CHECK(works_of_round(8, 8, 32) == 6 + 2);  // parameters and indices of all learners fit into one launch
}

// Returns the number of works that the host thread enqueues to evaluate `batches` more mini-batches.
std::uint64_t works_of_evaluation(int team, int batches) {
  const auto works_of = [team](int all) {
    RigOptions options = options_on({"cuda:0"}, {8});
    options.team = team;
    options.examples = options.batch * all;
    options.input = RigInput::kResident;
    TrainingRig rig(options);
    rig.run(2);
    const std::uint64_t before = cuda_stand_in::enqueued_works();
    CHECK(rig.scheduler().evaluate(rig.test_ring()).examples == options.examples);
    return cuda_stand_in::enqueued_works() - before;
  };
  constexpr int kFew = 16;
  return works_of(kFew + batches) - works_of(kFew);
}

TEST_CASE("a team evaluates with the host calls of one learner", "[training]") {
  // The calls are: wait for the model, indices, evaluation, result with the position.
  CHECK(works_of_evaluation(1, 24) == 24 * 4);
  CHECK(works_of_evaluation(4, 24) == 6 * 4);
  CHECK(works_of_evaluation(8, 24) == 3 * 4);
  CHECK(works_of_evaluation(8, 3) == 4);
}

TEST_CASE("an operator that fails on a GPU ends the training, and the error names the learner", "[training]") {
  RigOptions options = options_on({"cuda:0"}, {2});
  options.graphs = false;
  std::string message;
  {
    TrainingRig rig(options);
    rig.run(1);
    cuda_stand_in::fail_execution(cudaErrorIllegalAddress, 5);
    try {
      rig.run(3);
    } catch (const engine::Error& error) {
      CHECK(error.kind() == engine::ErrorKind::kDevice);
      message = error.what();
    }
  }
  CHECK_THAT(message, ContainsSubstring("cuda:0 learner"));
  cuda_stand_in::reset();  // memory of a failed device cannot be freed
}

}  // namespace arbalest::tests
