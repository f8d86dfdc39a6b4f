// Averaging is off the critical path, and each wait that keeps it correct is needed. The tests hold tasks and drop
// waits instead of reading a clock.
#include <string>

#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/latch.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/training_rig.h"

namespace {

using arbalest::tests::RigOptions;
using arbalest::tests::TrainingRig;

using arbalest::tests::goes_beyond;
using arbalest::tests::kGrace;
using arbalest::tests::kPatience;
using arbalest::tests::Latch;

constexpr const char* kWaitForRead = "wait for averaging's read";
constexpr const char* kWaitForUpdates = "wait for updated replicas";

RigOptions options_on(const std::vector<std::string>& devices, Latch& latch) {
  RigOptions options;
  options.devices = devices;
  options.learners = std::vector<int>(devices.size(), 2);
  options.observer = &latch;
  return options;
}

int learners_of(const RigOptions& options) { return 2 * static_cast<int>(options.devices.size()); }

// The devices of a run, and the label of the task that reads their replicas.
struct Reader {
  std::vector<std::string> devices;
  std::string label;
};

std::vector<Reader> readers() {
  std::vector<Reader> readers{{{"cpu"}, "averaging"}};
  const auto two = arbalest::tests::two_devices(arbalest::engine::host::allowed_cores());
  if (!two.empty()) readers.push_back({two, "averaging read"});
  return readers;
}

// Whether updates run while averaging's read is held.
bool update_overtakes_read(const Reader& reader, const std::string& dropped) {
  Latch latch;
  const RigOptions options = options_on(reader.devices, latch);
  latch.hold(reader.label);
  latch.drop_waits({dropped});
  TrainingRig rig(options);
  rig.scheduler().advance(rig.ring(), 1);
  CHECK(latch.reaches("gradient", learners_of(options), kPatience));
  const bool overtakes = goes_beyond(latch, "update", 0, learners_of(options), !dropped.empty());
  latch.release();
  return overtakes;
}

// Whether averaging reads replicas whose update is held. In round 0 there is no earlier update, so the read runs.
bool read_overtakes_update(const Reader& reader, const std::string& dropped) {
  Latch latch;
  const RigOptions options = options_on(reader.devices, latch);
  const int devices = static_cast<int>(reader.devices.size());
  latch.hold("update");
  latch.drop_waits({dropped});
  TrainingRig rig(options);
  rig.scheduler().advance(rig.ring(), 2);
  CHECK(latch.reaches(reader.label, devices, kPatience));
  const bool overtakes = goes_beyond(latch, reader.label, devices, devices, !dropped.empty());
  latch.release();
  return overtakes;
}

}  // namespace

TEST_CASE("with the all-reduce held, learners finish everything up to the next pulled update", "[training]") {
  const auto devices = arbalest::tests::two_devices(arbalest::engine::host::allowed_cores());
  if (devices.empty()) arbalest::tests::skip_test("needs two cores");
  for (const int period : {1, 3}) {
    CAPTURE(period);
    Latch latch;
    RigOptions options = options_on(devices, latch);
    options.synchronization.period = period;
    const int learners = learners_of(options);
    latch.hold("all-reduce");
    TrainingRig rig(options);
    const arbalest::tests::ReleaseAtEnd release(latch);
    rig.scheduler().advance(rig.ring(), 2);
    // The last update of each round is pulled; the local steps before it wait for nothing.
    CHECK(latch.reaches("gradient", 2 * period * learners, kPatience));
    CHECK(latch.reaches("update", (2 * period - 1) * learners, kPatience));
    CHECK_FALSE(latch.reaches("update", (2 * period - 1) * learners + 1, kGrace));
    CHECK(latch.finished("all-reduce") == 0);
    latch.release();
    rig.scheduler().drain();
    CHECK(latch.finished("update") == 2 * period * learners);
  }
}

TEST_CASE("an update waits for averaging's read, and only because of its event", "[training]") {
  for (const Reader& reader : readers()) {
    CHECK_FALSE(update_overtakes_read(reader, ""));
    if (!arbalest::tests::kSanitized) CHECK(update_overtakes_read(reader, kWaitForRead));  // a data race, on purpose
  }
}

TEST_CASE("averaging reads the replicas after the updates, and only because of their events", "[training]") {
  for (const Reader& reader : readers()) {
    CHECK_FALSE(read_overtakes_update(reader, ""));
    if (!arbalest::tests::kSanitized) CHECK(read_overtakes_update(reader, kWaitForUpdates));
  }
}

TEST_CASE("a mini-batch that would overwrite an unread result is refused", "[training]") {
  Latch latch;
  RigOptions options;
  options.observer = &latch;
  TrainingRig rig(options);
  const int slots = arbalest::scheduler::result_slots(options.synchronization.period);
  arbalest::learners::Ticket oldest;
  SECTION("of a training step") {
    arbalest::learners::Team& team = *rig.pools().front()->teams().front();
    const auto gradient = [&](const arbalest::dataflow::Batch& batch) {
      arbalest::learners::Ticket ticket;
      team.gradient({&batch, 1}, {.learning_rate = 0.1F}, {&ticket, 1});
      return ticket;
    };
    latch.hold("gradient");
    for (int i = 0; i < slots; ++i) {
      arbalest::learners::Ticket ticket = gradient(*rig.ring().next());
      team.update({&ticket, 1}, {});
      if (i == 0) oldest = ticket;
    }
    const arbalest::dataflow::Batch next = *rig.ring().next();
    CHECK_THROWS_AS(gradient(next), arbalest::engine::Error);
    latch.release();
    oldest.done.synchronize();
    CHECK_NOTHROW(gradient(next));
  }
  SECTION("of an evaluation") {
    arbalest::learners::Team& team = *rig.pools().front()->teams().front();
    const arbalest::dataflow::Batch batch = *rig.ring().next();
    const auto evaluate = [&] {
      arbalest::learners::Ticket ticket;
      team.evaluate({&batch, 1}, {}, {&ticket, 1});
      return ticket;
    };
    latch.hold("evaluate");
    for (int i = 0; i < slots; ++i) {
      const arbalest::learners::Ticket ticket = evaluate();
      if (i == 0) oldest = ticket;
    }
    CHECK_THROWS_AS(evaluate(), arbalest::engine::Error);
    latch.release();
    oldest.done.synchronize();
    CHECK_NOTHROW(evaluate());
  }
}
