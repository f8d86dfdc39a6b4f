// The pieces of delayed block proximal gradient.
#include <atomic>
#include <cmath>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "scheduler/sparse/coordinate_blocks.h"
#include "scheduler/sparse/delay_window.h"
#include "scheduler/sparse/logistic_loss.h"
#include "scheduler/sparse/worker_threads.h"
#include "sma/proximal_step.h"
#include "tests/support/catch.h"
#include "tests/support/sparse_data.h"

namespace {

using namespace arbalest;
using scheduler::CoordinateBlock;
using scheduler::DelayWindow;
using sma::Coordinate;

}  // namespace

TEST_CASE("proximal step: each case by hand") {
  const double wide = 100.0;
  // G + lambda = 1 <= u w = 4: d = -1/2.
  CHECK(sma::proximal_step({2.0, 0.5, 2.0, 0.5}, wide) == -0.5);
  // G - lambda = 2.5 >= u w = -4: d = -1.25.
  CHECK(sma::proximal_step({-2.0, 3.0, 2.0, 0.5}, wide) == -1.25);
  // Between: the weight becomes 0.
  CHECK(sma::proximal_step({0.25, 0.4, 2.0, 0.5}, wide) == -0.25);
  CHECK(sma::proximal_step({0.0, 0.4, 2.0, 0.5}, wide) == 0.0);
  // Clipped, also where the curvature is 0.
  CHECK(sma::proximal_step({0.0, -9.0, 2.0, 0.5}, 1.5) == 1.5);
  CHECK(sma::proximal_step({0.0, 9.0, 0.0, 0.5}, 1.5) == -1.5);
  CHECK(sma::proximal_step({0.0, 0.0, 0.0, 0.0}, 1.5) == 0.0);
  CHECK(sma::next_bound(-0.2, 5.0) == Approx(0.5));
  CHECK(sma::next_bound(3.0, 5.0) == 5.0);
}

TEST_CASE("proximal step: it is the soft threshold of w - G/u at lambda/u") {
  std::mt19937 random(1);
  for (int i = 0; i < 10000; ++i) {
    const auto draw = [&] { return 4.0 * tests::uniform(random) - 2.0; };
    const Coordinate at{draw(), draw(), std::abs(draw()) + 0.01, std::abs(draw())};
    const double moved = at.weight - at.gradient / at.curvature;
    const double target = std::copysign(std::max(0.0, std::abs(moved) - at.lambda / at.curvature), moved);
    CHECK(at.weight + sma::proximal_step(at, 1e9) == Approx(target).margin(1e-9));
  }
}

TEST_CASE("proximal step: violations of the conditions of a minimum, and the filter") {
  CHECK(sma::kkt_violation({0.0, 0.75, 1.0, 0.5}) == 0.25);
  CHECK(sma::kkt_violation({0.0, -0.5, 1.0, 0.5}) == 0.0);
  CHECK(sma::kkt_violation({1.0, -0.75, 1.0, 0.5}) == 0.25);
  CHECK(sma::kkt_violation({-1.0, 0.5, 1.0, 0.5}) == 0.0);
  CHECK(sma::is_filtered({0.0, 0.25, 1.0, 0.5}, 0.125));
  CHECK_FALSE(sma::is_filtered({0.0, 0.375, 1.0, 0.5}, 0.125));  // |G| < lambda - margin is strict
  CHECK_FALSE(sma::is_filtered({1e-9, 0.25, 1.0, 0.5}, 0.125));
  CHECK_FALSE(sma::is_filtered({0.0, 0.0, 1.0, 0.0}, 0.0));  // the bias
}

TEST_CASE("coordinate blocks cover every coordinate once, in a new order each pass") {
  for (const auto& [coordinates, count] : {std::pair{10, 3}, {7, 7}, {100, 1}}) {
    std::int64_t next = 0;
    for (const CoordinateBlock& block : scheduler::equal_blocks(coordinates, count)) {
      CHECK(block.first == next);
      CHECK((block.size() == coordinates / count || block.size() == coordinates / count + 1));
      next = block.end;
    }
    CHECK(next == coordinates);
  }
  const auto order = scheduler::random_order(50, 1, 2, 3);
  CHECK(order == scheduler::random_order(50, 1, 2, 3));
  CHECK(order != scheduler::random_order(50, 1, 2, 4));
  CHECK(order != scheduler::random_order(50, 2, 2, 3));
  std::vector<bool> seen(50, false);
  for (const std::int64_t block : order) seen[static_cast<std::size_t>(block)] = true;
  CHECK(std::ranges::count(seen, true) == 50);
}

TEST_CASE("delay window: while one worker is held, another begins exactly max_delay further blocks") {
  for (const int delay : {0, 1, 4}) {
    constexpr std::int64_t kBlocks = 12;
    DelayWindow window(2, kBlocks, delay);
    std::atomic<std::int64_t> begun = 0;
    std::atomic<std::int64_t> finished = 0;
    std::atomic<bool> is_early = false;
    std::jthread other([&] {
      for (std::int64_t block = 0; window.start(block); ++block) {
        if (finished < block - delay) is_early = true;
        begun = block + 1;
        begun.notify_all();
        if (window.publish(block)) window.finish(block);
      }
    });
    for (std::int64_t block = 0; window.start(block); ++block) {
      // The other one needs nothing from this one to come so far.
      for (std::int64_t now = begun; now < std::min(kBlocks, block + delay + 1); now = begun) begun.wait(now);
      finished = block + 1;
      if (window.publish(block)) window.finish(block);  // the other one may still be at its part of this block
    }
    CHECK(window.wait_for_end() == kBlocks);
    other.join();
    CHECK_FALSE(is_early);
    CHECK(begun == kBlocks);
  }
}

TEST_CASE("delay window: no block begins early, and every block is completed once, in any course") {
  constexpr std::int64_t kBlocks = 40;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const int workers = 1 + static_cast<int>(seed % 4);
    const int delay = static_cast<int>(seed % 3) * 2;
    DelayWindow window(workers, kBlocks, delay);
    std::vector<std::atomic<int>> done(kBlocks);
    std::atomic<bool> is_early = false;
    {
      std::vector<std::jthread> threads;
      for (int w = 0; w < workers; ++w) {
        threads.emplace_back([&, w] {
          std::mt19937 random(seed * 100 + static_cast<std::uint32_t>(w));
          for (std::int64_t block = 0; window.start(block); ++block) {
            for (std::int64_t b = 0; b < block - delay; ++b) {
              if (done[static_cast<std::size_t>(b)] != 1) is_early = true;
            }
            for (std::uint32_t i = random() % 4; i > 0; --i) std::this_thread::yield();
            if (!window.publish(block)) continue;
            ++done[static_cast<std::size_t>(block)];
            window.finish(block);
          }
        });
      }
    }
    CHECK_FALSE(is_early);
    for (const auto& count : done) CHECK(count == 1);
  }
}

TEST_CASE("delay window: while another process is silent, max_delay further blocks begin") {
  for (const int delay : {0, 1, 4}) {
    constexpr std::int64_t kBlocks = 12;
    DelayWindow window(1, kBlocks, delay, 2);
    std::atomic<std::int64_t> begun = 0;
    std::atomic<std::int64_t> arrived = 0;
    std::atomic<bool> is_early = false;
    std::atomic<bool> has_failed = false;
    const auto arrive = [&](std::int64_t block) {
      if (window.arrive(block)) window.finish(block);
    };
    std::jthread worker([&] {
      for (std::int64_t block = 0; window.start(block); ++block) {
        if (arrived < block - delay) is_early = true;
        begun = block + 1;
        begun.notify_all();
        if (!window.publish(block)) has_failed = true;  // Catch2's assertions are for one thread
        arrive(block);
      }
    });
    for (std::int64_t block = 0; block < kBlocks; ++block) {
      for (std::int64_t now = begun; now < std::min(kBlocks, block + delay + 1); now = begun) begun.wait(now);
      CHECK_FALSE(window.is_over());
      arrived = block + 1;
      arrive(block);
    }
    worker.join();
    CHECK_FALSE(is_early);
    CHECK_FALSE(has_failed);
    CHECK(begun == kBlocks);
    CHECK(window.is_over());
    CHECK(window.wait_for_end() == kBlocks);
  }
}

TEST_CASE("delay window: a stop at a block ends the pass max_delay blocks later, for every worker") {
  DelayWindow window(2, 10, 3);
  for (std::int64_t block = 0; block < 4; ++block) REQUIRE(window.start(block));
  for (std::int64_t block = 0; block < 4; ++block) CHECK_FALSE(window.publish(block));
  // The other worker still has to do its parts of all that may have begun.
  for (std::int64_t block = 0; block < 4; ++block) {
    REQUIRE(window.start(block));
    REQUIRE(window.publish(block));
    if (block == 0) window.stop_after(block);
    CHECK_FALSE(window.is_over());
    window.finish(block);
  }
  CHECK_FALSE(window.start(4));
  CHECK(window.is_over());
  CHECK(window.wait_for_end() == 4);
}

TEST_CASE("delay window: nobody waits after cancel") {
  DelayWindow window(2, 10, 0);
  REQUIRE(window.start(0));
  std::jthread waiting([&] { CHECK_FALSE(window.start(1)); });
  window.cancel();
  waiting.join();
  CHECK(window.wait_for_end() == -1);
}

TEST_CASE("worker threads: the first error cancels the others and is thrown") {
  DelayWindow window(3, 10, 0);
  const auto work = [&](int worker) {
    if (worker == 1) throw std::runtime_error("worker 1 fails");
    if (window.start(0)) window.publish(0);
    window.start(1);  // waits for worker 1
  };
  CHECK_THROWS_WITH(scheduler::run_workers({{}, {}, {}}, work, [&] { window.cancel(); }), "worker 1 fails");
}

TEST_CASE("logistic loss: no overflow, and scores by hand") {
  CHECK(scheduler::logistic_loss(0.0) == Approx(std::log(2.0)));
  CHECK(scheduler::logistic_loss(2.0) == Approx(std::log1p(std::exp(-2.0))));
  CHECK(scheduler::logistic_loss(-1000.0) == 1000.0);
  CHECK(scheduler::logistic_loss(1000.0) == 0.0);
  CHECK(scheduler::wrong_probability(-1000.0) == 1.0);
  dataflow::SparseRows rows;
  rows.columns = 3;
  rows.starts = {0, 2, 2, 3};
  rows.indices = {0, 2, 1};
  rows.values = {1.0F, 2.0F, 4.0F};
  rows.labels = {1, -1, 1};
  // Outputs 0.5 + 1 - 2, 0.5, 0.5 + 0: margins -0.5, -0.5, 0.5.
  const auto scores = scheduler::evaluate({{1.0F, 0.0F, -1.0F}, 0.5F}, rows);
  CHECK(scores.accuracy == Approx(1.0 / 3.0));
  CHECK(scores.loss == Approx((2.0 * std::log1p(std::exp(0.5)) + std::log1p(std::exp(-0.5))) / 3.0));
}
