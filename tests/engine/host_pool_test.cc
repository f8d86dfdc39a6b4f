#include "engine/host/pool.h"

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

using arbalest::engine::host::Pool;

TEST_CASE("every task runs once, and drain waits for all", "[host]") {
  Pool pool(GENERATE(1, 2, 3, 8));
  std::vector<int> runs(10'000, 0);  // not atomic: a task is ordered before the drain that follows it
  for (int repetition = 1; repetition <= 3; ++repetition) {
    for (int& run : runs) pool.submit([&run] { ++run; });
    pool.drain();
    CHECK(std::accumulate(runs.begin(), runs.end(), 0) == repetition * 10'000);
  }
}

TEST_CASE("at most the pool's number of tasks run at a time", "[host]") {
  const int threads = GENERATE(1, 2, 4);
  Pool pool(threads);
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  for (int task = 0; task < 200; ++task) {
    pool.submit([&] {
      const int now = ++running;
      int seen = most.load();
      while (seen < now && !most.compare_exchange_weak(seen, now)) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      --running;
    });
  }
  pool.drain();
  CHECK(most >= 1);
  CHECK(most <= threads);
}

TEST_CASE("two tasks run at once in a pool of two threads on any machine", "[host]") {
  Pool small(1);  // another, smaller pool does not limit the pool under test
  Pool pool(2);
  std::array<std::atomic<bool>, 2> started{};
  for (std::size_t self = 0; self < 2; ++self) {
    pool.submit([&started, self] {
      started[self] = true;
      started[self].notify_all();
      started[1 - self].wait(false);  // would not return if the other had to wait for this one
    });
  }
  pool.drain();
  CHECK(started[0]);
  CHECK(started[1]);
}

TEST_CASE("tasks may submit tasks, and several threads may submit at once", "[host]") {
  Pool pool(3);
  std::atomic<int> runs{0};
  std::vector<std::jthread> submitters;
  for (int thread = 0; thread < 4; ++thread) {
    submitters.emplace_back([&] {
      for (int task = 0; task < 500; ++task) {
        pool.submit([&] {
          ++runs;
          pool.submit([&runs] { ++runs; });
        });
      }
    });
  }
  submitters.clear();
  pool.drain();
  CHECK(runs == 4'000);
}

TEST_CASE("the destructor of a pool waits, and tasks are destroyed once run", "[host]") {
  const auto token = std::make_shared<int>(0);
  {
    Pool pool(2);
    for (int task = 0; task < 100; ++task) pool.submit([token] { std::this_thread::yield(); });
    pool.drain();
    CHECK(token.use_count() == 1);
    for (int task = 0; task < 100; ++task) pool.submit([token] { std::this_thread::yield(); });
  }
  CHECK(token.use_count() == 1);
}
