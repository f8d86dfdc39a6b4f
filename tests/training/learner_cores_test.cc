// The threads and cores on which each learner of a CPU device computes.
#include <omp.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/host/topology.h"
#include "engine/stream_observer.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/training_rig.h"

namespace arbalest::tests {
namespace {

struct Seat {
  int threads;             // threads of a parallel loop
  std::vector<int> cores;  // cores that the thread may use
};

// Notes, by stream, the seat on which its tasks run.
class Seats final : public engine::StreamObserver {
 public:
  void before_task(const engine::Stream& stream, const engine::TaskInfo&) override {
    const std::lock_guard lock(mutex_);
    seats_[stream.name()] = {omp_get_max_threads(), engine::host::allowed_cores()};  // of the present thread
  }
  void after_task(const engine::Stream&, const engine::TaskInfo&) override {}

  Seat of(const std::string& stream) {
    const std::lock_guard lock(mutex_);
    REQUIRE(seats_.contains(stream));
    return seats_[stream];
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Seat> seats_;
};

// Trains a round with as many learners as `expected` has seats.
void check_seats(const std::vector<int>& cores, const std::vector<Seat>& expected) {
  Seats seats;
  RigOptions options;
  options.devices = {fmt::format("cpu:{}", fmt::join(cores, ","))};
  options.learners = {static_cast<int>(expected.size())};
  options.observer = &seats;
  TrainingRig rig(options);
  rig.run(1);
  CAPTURE(cores.size(), expected.size());
  for (std::size_t j = 0; j < expected.size(); ++j) {
    CAPTURE(j);
    const Seat seat = seats.of(fmt::format("{} learner {}", options.devices.front(), j));
    CHECK(seat.threads == expected[j].threads);
    CHECK(seat.cores == expected[j].cores);
  }
  if (expected.size() > 1) CHECK(seats.of(options.devices.front() + " averaging").cores == cores);
}

}  // namespace

TEST_CASE("the cores of a device are divided among its learners, and each learner has its own", "[training]") {
  const std::vector<int> all = engine::host::allowed_cores();
  if (all.size() < 2) skip_test("needs two cores");
  const int a = all[0];
  const int b = all[1];
  check_seats({a, b}, {{2, {a, b}}});
  check_seats({a, b}, {{1, {a}}, {1, {b}}});
  check_seats({a, b}, {{1, {a}}, {1, {b}}, {1, {a}}});  // more learners than cores share them in turn
  if (all.size() < 4) {
    WARN("skipped: four cores");
    return;
  }
  const int c = all[2];
  const int d = all[3];
  check_seats({a, b, c, d}, {{4, {a, b, c, d}}});
  check_seats({a, b, c, d}, {{2, {a, b}}, {2, {c, d}}});
  check_seats({a, b, c, d}, {{1, {a}}, {1, {b}}, {1, {c}}, {1, {d}}});
}

TEST_CASE("an unpinned device gives its learners as many threads as its cores allow", "[training]") {
  const int cores = engine::host::usable_cores();
  for (const int learners : {1, 2, cores}) {
    CAPTURE(cores, learners);
    Seats seats;
    RigOptions options;
    options.learners = {learners};
    options.observer = &seats;
    TrainingRig rig(options);
    rig.run(1);
    for (int j = 0; j < learners; ++j) {
      CHECK(seats.of(fmt::format("cpu learner {}", j)).threads == std::max(1, cores / learners));
    }
  }
}

}  // namespace arbalest::tests
