// Delayed block proximal gradient against plain references.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "scheduler/sparse/coordinate_blocks.h"
#include "scheduler/sparse/order_streams.h"
#include "scheduler/sparse/proximal_solver.h"
#include "sma/proximal_step.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/reference_logistic.h"
#include "tests/support/sparse_data.h"

namespace {

using namespace arbalest;
using scheduler::ProximalOptions;
using scheduler::ProximalPass;
using scheduler::ProximalSolver;
using tests::BlockDescent;
using tests::LogisticProblem;

std::vector<std::vector<int>> floating(int workers) {
  return std::vector<std::vector<int>>(static_cast<std::size_t>(workers));
}

std::vector<BlockDescent::Block> blocks_of(const ProximalOptions& options, std::size_t coordinates,
                                           std::uint64_t pass) {
  const auto blocks = scheduler::equal_blocks(static_cast<std::int64_t>(coordinates), options.blocks);
  std::vector<BlockDescent::Block> order;
  for (const std::int64_t b : scheduler::random_order(options.blocks, options.seed, scheduler::kBlockOrder, pass)) {
    const auto& block = blocks[static_cast<std::size_t>(b)];
    order.push_back({static_cast<std::size_t>(block.first), static_cast<std::size_t>(block.end)});
  }
  return order;
}

// Passes as a run takes them: one without the filter after the objective has settled, until that settles, too.
ProximalPass minimize(ProximalSolver& solver, double tolerance, int most_passes) {
  ProximalPass last{.objective = 1e9};
  bool visits_all = false;
  for (int number = 0; number < most_passes; ++number) {
    const double before = last.objective;
    last = solver.pass(static_cast<std::uint64_t>(number));
    const bool has_settled = std::abs(before - last.objective) <= tolerance * last.objective;
    if (has_settled && visits_all) break;
    visits_all = has_settled;
    if (visits_all) solver.reset_filter();
  }
  return last;
}

}  // namespace

TEST_CASE("delayed proximal: with any number of workers a pass equals sequential block descent") {
  const auto rows = tests::make_sparse_rows({}, 5);
  const LogisticProblem problem(rows, 0.005);
  for (const int delay : {0, 2, 4}) {
    const ProximalOptions options{.blocks = 9, .max_delay = delay, .l1 = 0.005, .seed = 7};
    for (const int workers : {1, 2, 3}) {
      INFO(delay << " delayed blocks, " << workers << " workers");
      ProximalSolver solver(rows, options, floating(workers));
      BlockDescent reference(problem, delay);
      for (std::uint64_t pass = 0; pass < 6; ++pass) {
        const ProximalPass done = solver.pass(pass);
        reference.pass(blocks_of(options, problem.coordinates(), pass));
        CHECK(done.step == 1.0);  // the reference never halves it
        CHECK(tests::largest_difference(solver.coordinates(), reference.weights()) < 1e-6);
        CHECK(done.objective == Approx(problem.objective(reference.weights())).epsilon(1e-9));
      }
      CHECK(solver.coordinates() != std::vector<double>(61, 0.0));
    }
  }
}

TEST_CASE("delayed proximal: the same workers give the same bits") {
  const auto rows = tests::make_sparse_rows({.rows = 3000, .columns = 200}, 6);
  const ProximalOptions options{.blocks = 20, .max_delay = 3, .l1 = 0.001};
  std::vector<double> first;
  for (int run = 0; run < 5; ++run) {
    ProximalSolver solver(rows, options, floating(3));
    for (std::uint64_t pass = 0; pass < 4; ++pass) solver.pass(pass);
    if (first.empty()) first = solver.coordinates();
    CHECK(solver.coordinates() == first);
  }
}

TEST_CASE("delayed proximal: reaches the minimum and its conditions, whatever the delay") {
  const auto rows = tests::make_sparse_rows({}, 8);
  const LogisticProblem problem(rows, 0.004);
  const std::vector<double> best = problem.minimum(4000);
  REQUIRE(problem.violation(best) < 1e-6);
  const double least = problem.objective(best);
  for (const int delay : {0, 2, 4}) {
    for (const int workers : {1, 2}) {
      INFO(delay << " delayed blocks, " << workers << " workers");
      ProximalSolver solver(rows, {.blocks = 8, .max_delay = delay, .l1 = 0.004}, floating(workers));
      const ProximalPass last = minimize(solver, 1e-9, 300);
      CHECK(last.objective - least < 1e-4 * least);
      CHECK(last.objective - least < 1e-6 * least);
      CHECK(problem.violation(solver.coordinates()) < 1e-3 * 0.004);
      CHECK(last.non_zeros == std::ranges::count_if(best.begin(), best.end() - 1, [](double w) { return w != 0.0; }));
      CHECK(last.non_zeros < 60);
    }
  }
}

// Feature 0 tells group 1. Feature 1 is in groups 1 and 2, whose labels differ: it is useless until feature 0 has
// learned group 1, and useful from then on.
TEST_CASE("delayed proximal: without the reset of the filter a weight stays wrongly at zero") {
  dataflow::SparseRows rows;
  rows.columns = 2;
  const auto add = [&](std::int8_t label, bool has_first, bool has_second) {
    if (has_first) rows.indices.push_back(0);
    if (has_second) rows.indices.push_back(1);
    rows.values.resize(rows.indices.size(), 1.0F);
    rows.labels.push_back(label);
    rows.starts.push_back(rows.entries());
  };
  for (int i = 0; i < 1000; ++i) add(1, true, true);
  for (int i = 0; i < 1000; ++i) add(-1, false, true);
  const double l1 = 0.1;
  const LogisticProblem problem(rows, l1);
  const ProximalOptions options{.blocks = 2, .l1 = l1, .bias = false, .first_bound = 0.05};
  ProximalSolver solver(rows, options, floating(1));
  const auto violation = [&] {
    std::vector<double> w = solver.coordinates();
    w.push_back(0.0);
    const std::vector<double> g = problem.gradient(w);
    return std::max(sma::kkt_violation({w[0], g[0], 1.0, l1}), sma::kkt_violation({w[1], g[1], 1.0, l1}));
  };
  std::uint64_t number = 0;
  for (; number < 60; ++number) solver.pass(number);
  CHECK(solver.coordinates()[0] > 1.0);
  CHECK(solver.coordinates()[1] == 0.0);
  CHECK(violation() > 0.01);
  solver.reset_filter();
  for (; number < 200; ++number) solver.pass(number);
  CHECK(solver.coordinates()[1] < -0.1);
  CHECK(violation() < 1e-6);
}

TEST_CASE("delayed proximal: equal features overshoot together, so the step is halved until it holds") {
  auto rows = tests::make_sparse_rows({.rows = 200, .columns = 10, .entries = 3}, 9);
  // Ten copies of every feature, side by side in one block.
  dataflow::SparseRows copies;
  copies.columns = 100;
  copies.labels = rows.labels;
  for (std::size_t row = 0; row < rows.labels.size(); ++row) {
    for (auto e = static_cast<std::size_t>(rows.starts[row]); std::cmp_less(e, rows.starts[row + 1]); ++e) {
      for (std::int32_t copy = 0; copy < 10; ++copy) {
        copies.indices.push_back(10 * rows.indices[e] + copy);
        copies.values.push_back(rows.values[e]);
      }
    }
    copies.starts.push_back(copies.entries());
  }
  const LogisticProblem problem(copies, 0.01);
  const double least = problem.objective(problem.minimum(4000));
  ProximalSolver solver(copies, {.blocks = 1, .l1 = 0.01}, floating(2));
  const ProximalPass last = minimize(solver, 1e-8, 500);
  CHECK(last.step < 1.0);
  CHECK(last.objective - least < 1e-4 * least);
}

TEST_CASE("delayed proximal: no pass raises the objective, and similar features reach the minimum with any delay") {
  const auto rows = tests::make_clustered_rows({.rows = 300, .clusters = 8, .columns_of_cluster = 6}, 11);
  const LogisticProblem problem(rows, 1e-3);
  const double least = problem.objective(problem.minimum(20000));
  for (const int delay : {0, 2, 4}) {
    INFO(delay << " delayed blocks");
    ProximalSolver solver(rows, {.blocks = 8, .max_delay = delay, .l1 = 1e-3}, floating(2));
    double before = std::log(2.0);
    int undone = 0;
    bool has_grown = false;
    ProximalPass last;
    for (std::uint64_t number = 0; number < 900; ++number) {
      if (number % 10 == 0) solver.reset_filter();
      const double step = last.step;
      last = solver.pass(number);
      has_grown = has_grown || last.step > step;
      CHECK(last.objective <= before * (1.0 + 1e-8));
      CHECK(last.objective == Approx(problem.objective(solver.coordinates())).epsilon(1e-9));
      before = last.objective;
      undone += last.is_undone ? 1 : 0;
    }
    CHECK(undone > 0);  // the full step is too long for these rows
    CHECK(has_grown);   // a shorter step is tried again at twice its length
    CHECK(last.objective - least < 1e-4 * least);
  }
}

TEST_CASE("delayed proximal: one row with a value that is far too large does not lose the weight") {
  dataflow::SparseRows rows;
  rows.columns = 1;
  const auto add = [&](float value, std::int8_t label) {
    rows.indices.push_back(0);
    rows.values.push_back(value);
    rows.labels.push_back(label);
    rows.starts.push_back(rows.entries());
  };
  for (int i = 0; i < 400; ++i) add(i % 2 == 0 ? 1000.0F : -1000.0F, i % 2 == 0 ? 1 : -1);
  add(30000.0F, -1);
  const LogisticProblem problem(rows, 1e-6);
  ProximalSolver solver(rows, {.blocks = 1, .l1 = 1e-6, .bias = false}, floating(1));
  ProximalPass last;
  for (std::uint64_t number = 0; number < 200; ++number) last = solver.pass(number);
  double least = std::log(2.0);  // over the only weight
  for (double weight = 0.0; weight < 0.02; weight += 1e-6) least = std::min(least, problem.objective({weight, 0.0}));
  CHECK(least < 0.5);
  CHECK(last.objective < least * (1.0 + 1e-4));
}

TEST_CASE("delayed proximal: a stop signal leaves whole blocks, and the margins belong to the weights") {
  const auto rows = tests::make_sparse_rows({}, 10);
  const LogisticProblem problem(rows, 0.001);
  ProximalSolver solver(rows, {.blocks = 12, .max_delay = 2, .l1 = 0.001}, floating(3));
  const std::atomic<int> signal = 15;
  const ProximalPass cut = solver.pass(0, &signal);
  CHECK_FALSE(cut.is_whole);
  CHECK(cut.blocks >= 1);
  CHECK(cut.blocks < 12);
  CHECK(cut.objective == Approx(problem.objective(solver.coordinates())).epsilon(1e-9));
  CHECK(solver.pass(1).is_whole);
  CHECK(solver.model().weights.size() == 60);
  CHECK(solver.model().bias == static_cast<float>(solver.coordinates().back()));
}
