// Hogwild against sequential stochastic gradient descent.
#include "scheduler/sparse/hogwild.h"

#include <atomic>
#include <cmath>
#include <iterator>
#include <vector>

#include "scheduler/sparse/coordinate_blocks.h"
#include "scheduler/sparse/order_streams.h"
#include "tests/support/catch.h"
#include "tests/support/sparse_data.h"

namespace {

using namespace arbalest;
using scheduler::HogwildEpoch;
using scheduler::HogwildSolver;

std::vector<std::vector<int>> floating(int threads) {
  return std::vector<std::vector<int>>(static_cast<std::size_t>(threads));
}

// Plain stochastic gradient descent in double precision; the last weight is the bias.
void descend(const dataflow::SparseRows& rows, std::uint64_t epoch, double rate, bool bias, std::vector<double>& w) {
  for (const std::int64_t row : scheduler::random_order(rows.rows(), 1, scheduler::kRowOrder, epoch)) {
    const auto i = static_cast<std::size_t>(row);
    double output = w.back();
    for (std::int64_t e = rows.starts[i]; e < rows.starts[i + 1]; ++e) {
      const auto at = static_cast<std::size_t>(e);
      output += w[static_cast<std::size_t>(rows.indices[at])] * rows.values[at];
    }
    const double change = rate * rows.labels[i] / (1.0 + std::exp(rows.labels[i] * output));
    for (std::int64_t e = rows.starts[i]; e < rows.starts[i + 1]; ++e) {
      const auto at = static_cast<std::size_t>(e);
      w[static_cast<std::size_t>(rows.indices[at])] += change * rows.values[at];
    }
    if (bias) w.back() += change;
  }
}

}  // namespace

TEST_CASE("hogwild: one thread is stochastic gradient descent") {
  const auto rows = tests::make_sparse_rows({.rows = 500}, 2);
  for (const bool bias : {true, false}) {
    HogwildSolver solver(rows, {.bias = bias}, floating(1));
    std::vector<double> expected(61, 0.0);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const HogwildEpoch done = solver.epoch(epoch, 0.1F);
      descend(rows, epoch, 0.1, bias, expected);
      CHECK(done.is_whole);
      CHECK(done.rows == 500);
      for (std::size_t j = 0; j < 60; ++j) CHECK(solver.model().weights[j] == Approx(expected[j]).margin(1e-5));
      CHECK(solver.model().bias == Approx(expected[60]).margin(1e-5));
    }
  }
}

TEST_CASE("hogwild: several threads train every row and end where one ends") {
  const auto rows = tests::make_sparse_rows({.rows = 20000, .columns = 2000, .entries = 10}, 3);
  HogwildSolver one(rows, {}, floating(1));
  HogwildSolver four(rows, {}, floating(4));
  // The threads' order is another one in each run. Small steps at the end leave little of it in the loss.
  const float rates[] = {0.1F, 0.05F, 0.02F, 0.005F, 0.002F};
  for (std::uint64_t epoch = 0; epoch < std::size(rates); ++epoch) {
    one.epoch(epoch, rates[epoch]);
    const HogwildEpoch done = four.epoch(epoch, rates[epoch]);
    CHECK(done.rows == 20000);
  }
  const double loss = scheduler::evaluate(one.model(), rows).loss;
  CHECK(loss < 0.6);
  CHECK(scheduler::evaluate(four.model(), rows).loss == Approx(loss).epsilon(0.01));
}

TEST_CASE("hogwild: features that no row has are not touched, and a stop signal ends the epoch") {
  auto rows = tests::make_sparse_rows({.rows = 300}, 4);
  rows.columns = 100;
  HogwildSolver solver(rows, {}, floating(2));
  CHECK(solver.epoch(0, 0.1F).is_whole);
  for (std::size_t j = 60; j < 100; ++j) CHECK(solver.model().weights[j] == 0.0F);
  const std::atomic<int> signal = 2;
  const HogwildEpoch cut = solver.epoch(1, 0.1F, &signal);
  CHECK_FALSE(cut.is_whole);
  CHECK(cut.rows == 0);
}
