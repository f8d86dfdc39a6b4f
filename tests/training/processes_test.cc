// Training over several processes, whose worlds are in threads of this process: the same bytes as in one process.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/host/topology.h"
#include "tests/process/memory_network.h"
#include "tests/support/catch.h"
#include "tests/support/process_rig.h"
#include "tests/support/sanitized.h"
#include "tests/support/scheme_rig.h"
#include "tests/support/small_training.h"

namespace {

using namespace arbalest;
using tests::all_schemes;
using tests::check_equal;
using tests::Outcome;
using tests::outcome_of;
using tests::ProcessPart;
using tests::RigOptions;
using tests::SchemeCase;
using tests::Script;
using tests::TrainingRig;

// Learners have one thread each then, however many there are.
std::string one_core() { return "cpu:" + std::to_string(engine::host::allowed_cores().front()); }

// The outcome of each process. Each has its part of `learners` on one device.
std::vector<Outcome> train_over(const std::vector<int>& learners, const RigOptions& options, const Script& script) {
  std::vector<ProcessPart> parts;
  for (const int own : learners) parts.push_back({{one_core()}, {own}});
  return tests::train_over(parts, options, script);
}

// Trains with four learners in one process, in two and in four.
void compare(const RigOptions& options, const Script& script) {
  const Outcome expected = tests::train_alone({{one_core()}, {4}}, options, script);
  check_equal(expected, train_over({2, 2}, options, script));
  if (!tests::kSanitized) check_equal(expected, train_over({1, 1, 1, 1}, options, script));
}

scheduler::Progress train(TrainingRig& rig) { return rig.run(8); }

}  // namespace

TEST_CASE("processes: every scheme trains to the bytes of one process", "[processes]") {
  for (const SchemeCase& scheme : all_schemes()) {
    CAPTURE(scheme.name);
    RigOptions options = tests::scheme_options({4});
    options.synchronization = scheme.with_period(3).options;
    options.compare_rounds = 2;
    compare(options, train);
  }
}

TEST_CASE("processes: batch norm, dropout, moving averages and drops give the bytes of one process", "[processes]") {
  for (const bool has_norm : {true, false}) {
    CAPTURE(has_norm);
    RigOptions options = tests::options_on({"cpu"}, {4});
    options.synchronization = tests::sma_case().options;
    options.learning_rate.curve = scheduler::MultistepDrops{{{0.3, 0.5}}};
    if (has_norm) {
      options.layers = tests::normalized_network();
      options.statistic_batches = 5;
    } else {
      options.moving_average_epochs = 0.3;
    }
    compare(options, train);
  }
}

TEST_CASE("processes: resizes, switches and replicas' own losses give those of one process", "[processes]") {
  RigOptions options = tests::scheme_options({4});
  options.synchronization = tests::sma_case().options;
  options.switches = {tests::s_sgd_case().options};
  options.most_learners = 4;
  options.evaluates_replicas = true;
  const Script script = [](TrainingRig& rig) {
    scheduler::Progress progress = rig.run(3);
    const double before = rig.scheduler().evaluate_replicas(rig.test_ring());
    const int own = rig.pools().front()->count();
    tests::expect(rig.scheduler().learners() == 4, "four learners");
    if (own > 1) {
      rig.resize({own / 2});
      progress.add(rig.run(2));
      tests::expect(rig.scheduler().learners() == 2, "two learners");
      rig.resize({own});
    }
    rig.scheduler().switch_to(tests::s_sgd_case().options, scheduler::RateScaling::kKeep,
                              std::vector<int>{rig.pools().front()->count()});
    progress.add(rig.run(3));
    progress.replica_distance = before;  // compared with that of one process
    return progress;
  };
  const Outcome expected = tests::train_alone({{one_core()}, {4}}, options, script);
  check_equal(expected, train_over({2, 2}, options, script));
}

TEST_CASE("processes: learners of unequal numbers train every mini-batch once", "[processes]") {
  RigOptions options = tests::scheme_options({4});
  options.synchronization = tests::s_sgd_case().options;
  const std::vector<Outcome> first = train_over({1, 2}, options, train);
  const std::vector<Outcome> again = train_over({1, 2}, options, train);
  CHECK((first[0].model == first[1].model));
  CHECK((first[0].model == again[0].model));
  CHECK(2 * first[0].examples == first[1].examples);
}

TEST_CASE("processes: a saved state goes on to the same bytes in another number of processes", "[processes]") {
  RigOptions options = tests::scheme_options({4});
  options.synchronization = tests::local_sgd_case().with_period(3).options;
  RigOptions alone = options;
  alone.devices = {one_core()};
  alone.learners = {4};
  TrainingRig whole(alone);
  whole.run(7);
  TrainingRig until_cut(alone);
  until_cut.run(4);
  const scheduler::TrainingState state = until_cut.scheduler().save();
  const Script go_on = [&](TrainingRig& rig) {
    rig.scheduler().restore(state, options.synchronization, options.learning_rate.with_learners,
                            std::vector<int>{rig.pools().front()->count()});
    rig.ring().restart(state.batches);
    return rig.run(3);
  };
  const Outcome expected = outcome_of(whole, [](TrainingRig&) { return scheduler::Progress{}; });
  const std::vector<Outcome> processes = train_over({2, 2}, options, go_on);
  CHECK((processes[0].model == expected.model));
  CHECK((processes[1].replicas[1] == expected.replicas[3]));
}

TEST_CASE("processes: a divergence of one process is kept until all end at the same iteration", "[processes]") {
  RigOptions options = tests::scheme_options({4});
  options.synchronization = tests::local_sgd_case().with_period(50).options;
  options.learning_rate.base = 1e30;
  tests::MemoryNetwork network(2);
  std::vector<std::string> found(2);
  std::vector<int> later(2);  // divergences after the first was taken
  std::vector<std::uint64_t> batches(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto place = static_cast<std::size_t>(rank);
      const auto world = network.open(rank);
      RigOptions own = options;
      own.world = world.get();
      own.learners = {2};
      TrainingRig rig(own);
      rig.run(6);
      if (const auto divergence = rig.scheduler().take_divergence()) found[place] = divergence->what();
      later[place] = rig.scheduler().take_divergence() ? 1 : 0;
      batches[place] = rig.scheduler().batches();
      world->close();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(batches == std::vector<std::uint64_t>{24, 24});
  CHECK(later == std::vector<int>{0, 0});
  CHECK_THAT(found[0], ContainsSubstring("learner 0 on cpu"));
  CHECK_THAT(found[1], ContainsSubstring("learner 2 on cpu"));
}
