// Delayed block proximal gradient over several processes, whose worlds are in threads of this process.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <exception>
#include <numeric>
#include <vector>

#include "scheduler/sparse/block_exchange.h"
#include "scheduler/sparse/coordinate_blocks.h"
#include "scheduler/sparse/order_streams.h"
#include "scheduler/sparse/proximal_solver.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/reference_logistic.h"
#include "tests/support/sparse_data.h"

namespace {

using namespace arbalest;
using engine::process::World;
using scheduler::BlockExchange;
using scheduler::BlockSums;
using scheduler::ProximalOptions;
using scheduler::ProximalPass;
using scheduler::ProximalShare;
using scheduler::ProximalSolver;
using tests::expect;

std::vector<std::vector<int>> floating(int workers) {
  return std::vector<std::vector<int>>(static_cast<std::size_t>(workers));
}

// The state of a process after its passes.
struct Outcome {
  std::vector<double> coordinates;
  std::vector<ProximalPass> passes;
};

bool operator==(const Outcome& a, const Outcome& b) {
  const auto are_equal = [](const ProximalPass& x, const ProximalPass& y) {
    return x.is_whole == y.is_whole && x.is_undone == y.is_undone && x.blocks == y.blocks && x.loss == y.loss &&
           x.accuracy == y.accuracy && x.objective == y.objective && x.violation == y.violation && x.step == y.step &&
           x.non_zeros == y.non_zeros && x.active == y.active;
  };
  return a.coordinates == b.coordinates && std::ranges::equal(a.passes, b.passes, are_equal);
}

struct Task {
  dataflow::SparseRows rows;
  ProximalOptions options;
  int passes = 6;
  int period_of_resets = 1000;  // passes between two resets of the filter
};

Outcome outcome_of(const Task& task, int workers, const ProximalShare& share) {
  ProximalSolver solver(task.rows, task.options, floating(workers), share);
  Outcome outcome;
  for (int number = 0; number < task.passes; ++number) {
    if (number > 0 && number % task.period_of_resets == 0) solver.reset_filter();
    outcome.passes.push_back(solver.pass(static_cast<std::uint64_t>(number)));
  }
  outcome.coordinates = solver.coordinates();
  return outcome;
}

// The outcome of one process with all workers.
Outcome alone(const Task& task, int workers) { return outcome_of(task, workers, {}); }

// The outcomes of processes with these numbers of workers.
std::vector<Outcome> over(const Task& task, const std::vector<int>& workers) {
  std::vector<Outcome> outcomes(workers.size());
  tests::on_each_rank(static_cast<int>(workers.size()), [&](World& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    ProximalShare share{.world = &world};
    for (std::size_t r = 0; r < workers.size(); ++r) {
      if (r < rank) share.first += workers[r];
      share.workers += workers[r];
    }
    outcomes[rank] = outcome_of(task, workers[rank], share);
  });
  return outcomes;
}

}  // namespace

TEST_CASE("sparse processes: a pass equals sequential block descent, for any delay and processes", "[processes]") {
  Task task{.rows = tests::make_sparse_rows({}, 5), .options = {.blocks = 9, .l1 = 0.005, .seed = 7}};
  const tests::LogisticProblem problem(task.rows, 0.005);
  for (const int delay : {0, 2, 4}) {
    task.options.max_delay = delay;
    tests::BlockDescent reference(problem, delay);
    std::vector<double> objectives;
    for (std::uint64_t pass = 0; pass < 6; ++pass) {
      const auto blocks = scheduler::equal_blocks(61, 9);
      std::vector<tests::BlockDescent::Block> order;
      for (const std::int64_t b : scheduler::random_order(9, 7, scheduler::kBlockOrder, pass)) {
        const auto& block = blocks[static_cast<std::size_t>(b)];
        order.push_back({static_cast<std::size_t>(block.first), static_cast<std::size_t>(block.end)});
      }
      reference.pass(order);
      objectives.push_back(problem.objective(reference.weights()));
    }
    for (const std::vector<int>& workers : {std::vector<int>{1}, {1, 1}, {2, 1}, {1, 1, 1}}) {
      INFO(delay << " delayed blocks, " << workers.size() << " processes, " << workers.front()
                 << " workers of the first");
      for (const Outcome& outcome : over(task, workers)) {
        CHECK(tests::largest_difference(outcome.coordinates, reference.weights()) < 1e-6);
        for (std::size_t pass = 0; pass < objectives.size(); ++pass) {
          CHECK(outcome.passes[pass].step == 1.0);  // the reference never halves it
          CHECK(outcome.passes[pass].objective == Approx(objectives[pass]).epsilon(1e-9));
        }
      }
    }
  }
}

TEST_CASE("sparse processes: they have the bits of as many workers in one process, if each has 1, 2 or 4 of them",
          "[processes]") {
  // Some passes over these rows are undone, and the filter drops coordinates.
  Task task{.rows = tests::make_clustered_rows({.rows = 300, .clusters = 8, .columns_of_cluster = 6}, 11),
            .options = {.blocks = 8, .l1 = 0.01},
            .passes = 40,
            .period_of_resets = 9};
  for (const int delay : {0, 2, 4}) {
    task.options.max_delay = delay;
    for (const std::vector<int>& workers : {std::vector<int>{1, 1}, {1, 1, 1}, {2, 2}, {2, 2, 2}, {4, 4}}) {
      INFO(delay << " delayed blocks, " << workers.size() << " processes of " << workers[0]);
      const Outcome expected = alone(task, std::reduce(workers.begin(), workers.end()));
      CHECK(std::ranges::any_of(expected.passes, &ProximalPass::is_undone));
      CHECK(std::ranges::any_of(expected.passes, [](const ProximalPass& pass) { return pass.active < 49; }));
      for (const Outcome& outcome : over(task, workers)) CHECK(outcome == expected);
    }
  }
}

TEST_CASE("sparse processes: two runs of several workers have the same bits in all processes", "[processes]") {
  const Task task{.rows = tests::make_sparse_rows({.rows = 2000, .columns = 150}, 6),
                  .options = {.blocks = 20, .max_delay = 3, .l1 = 0.001},
                  .passes = 4};
  const Outcome first = over(task, {2, 1}).front();
  for (int run = 0; run < 3; ++run) {
    for (const Outcome& outcome : over(task, {2, 1})) CHECK(outcome == first);
  }
}

TEST_CASE("sparse processes: all reach the minimum, whatever the delay", "[processes]") {
  Task task{.rows = tests::make_sparse_rows({}, 8),
            .options = {.blocks = 8, .l1 = 0.004},
            .passes = 120,
            .period_of_resets = 20};
  const tests::LogisticProblem problem(task.rows, 0.004);
  const double least = problem.objective(problem.minimum(4000));
  for (const int delay : {0, 2, 4}) {
    task.options.max_delay = delay;
    const double of_one = alone(task, 1).passes.back().objective;
    CHECK(of_one - least < 1e-6 * least);
    for (const std::vector<int>& workers : {std::vector<int>{2, 2}, {1, 1, 1}}) {
      INFO(delay << " delayed blocks, " << workers.size() << " processes");
      for (const Outcome& outcome : over(task, workers)) {
        const ProximalPass& last = outcome.passes.back();
        CHECK(last.objective == Approx(of_one).epsilon(delay == 0 ? 1e-6 : 1e-4));
        CHECK(last.objective == Approx(problem.objective(outcome.coordinates)).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("sparse processes: there may be more processes than rows", "[processes]") {
  dataflow::SparseRows rows;
  rows.columns = 2;
  rows.starts = {0, 1, 2};
  rows.indices = {0, 1};
  rows.values = {1.0F, 1.0F};
  rows.labels = {1, -1};
  const Task task{.rows = rows, .options = {.blocks = 3, .max_delay = 1, .l1 = 0.01}, .passes = 5};
  const Outcome expected = alone(task, 3);
  for (const Outcome& outcome : over(task, {1, 1, 1})) CHECK(outcome == expected);
  CHECK(expected.passes.back().objective < std::log(2.0));
}

TEST_CASE("sparse processes: a signal to one ends the pass of all at the same block", "[processes]") {
  const auto rows = tests::make_sparse_rows({}, 10);
  const tests::LogisticProblem problem(rows, 0.001);
  for (const int delay : {0, 2, 4}) {
    std::vector<ProximalPass> cuts(3);
    std::vector<std::vector<double>> coordinates(3);
    tests::on_each_rank(3, [&](World& world) {
      const auto rank = static_cast<std::size_t>(world.rank());
      ProximalSolver solver(rows, {.blocks = 12, .max_delay = delay, .l1 = 0.001}, floating(1),
                            {.world = &world, .first = world.rank(), .workers = 3});
      const std::atomic<int> signal = rank == 1 ? 15 : 0;
      expect(solver.pass(0).is_whole, "a whole pass without a signal");
      cuts[rank] = solver.pass(1, &signal);
      coordinates[rank] = solver.coordinates();
      expect(solver.pass(2).is_whole, "a whole pass afterwards");
    });
    for (std::size_t rank = 0; rank < 3; ++rank) {
      INFO(delay << " delayed blocks, rank " << rank);
      CHECK_FALSE(cuts[rank].is_whole);
      CHECK(cuts[rank].blocks == delay + 1);
      CHECK(coordinates[rank] == coordinates[0]);
      CHECK(cuts[rank].objective == Approx(problem.objective(coordinates[rank])).epsilon(1e-9));
    }
  }
}

TEST_CASE("sparse processes: one that hangs within a pass is named", "[processes]") {
  const auto rows = tests::make_sparse_rows({}, 12);
  const auto errors = tests::errors_of_ranks(
      3,
      [&](World& world) {
        world.mailbox();
        if (world.rank() == 2) world.check(60.0);  // it sends heartbeats, but no sums
        ProximalSolver solver(rows, {.blocks = 12, .max_delay = 2, .l1 = 0.001}, floating(2),
                              {.world = &world, .first = 2 * world.rank(), .workers = 6});
        solver.pass(0);
      },
      {.peer_timeout_seconds = 2.0, .operation_timeout_seconds = 4.0}, tests::announce);
  for (const std::exception_ptr& error : errors) {
    REQUIRE(error);
    CHECK_THROWS_WITH(std::rethrow_exception(error), ContainsSubstring("rank 2 on host here hangs"));
  }
}

TEST_CASE("sparse processes: the others end when one fails within a pass, and name it", "[processes]") {
  const auto rows = tests::make_sparse_rows({}, 12);
  const auto errors = tests::errors_of_ranks(
      3,
      [&](World& world) {
        if (world.rank() == 2) {
          world.mailbox();
          engine::fail(engine::ErrorKind::kInternal, "rank 2 has had enough");
        }
        ProximalSolver solver(rows, {.blocks = 12, .max_delay = 2, .l1 = 0.001}, floating(2),
                              {.world = &world, .first = 2 * world.rank(), .workers = 6});
        solver.pass(0);
      },
      {.peer_timeout_seconds = 60.0}, tests::announce);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    REQUIRE(errors[rank]);
    try {
      std::rethrow_exception(errors[rank]);
    } catch (const engine::Error& error) {
      CHECK(error.kind() == engine::ErrorKind::kPeer);
      CHECK_THAT(error.what(), ContainsSubstring("rank 2 on host") && ContainsSubstring("has had enough"));
    }
  }
}

TEST_CASE("sparse processes: a process may be two windows of blocks behind another one's messages", "[processes]") {
  constexpr int kDelay = 2;
  tests::on_each_rank(3, [&](World& world) {
    BlockExchange exchange(&world, 9, kDelay);
    const auto number = [](int rank, std::int64_t position) {
      return BlockSums{{10.0 * rank + 0.25, static_cast<double>(position)}, rank == 2 && position == 5};
    };
    // Ranks 1 and 2 give all that they may before rank 0 takes the first block.
    constexpr std::int64_t kMost = 2 * kDelay + 2;
    int came = 0;
    const auto receive = [&](int messages) {
      while (came < messages) came += exchange.receive(0) ? 1 : 0;
    };
    if (world.rank() == 0) receive(2 * kMost);
    for (std::int64_t position = 0; position < kMost; ++position)
      exchange.give(position, number(world.rank(), position));
    receive(2 * kMost);
    for (std::int64_t position = 0; position < kMost; ++position) {
      const BlockSums total = exchange.take_total(position);
      expect(total.numbers == std::vector<double>{30.75, 3.0 * static_cast<double>(position)}, "sum");
      expect(total.wants_stop == (position == 5), "the wish to stop");
    }
  });
}
