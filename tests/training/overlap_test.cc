// Averaging is off the critical path, and each wait that keeps it correct is needed: proved by holding and dropping
// tasks, without a clock. A negative ("nothing ran meanwhile") is believed after a grace period; a positive is waited
// for.
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "engine/host/topology.h"
#include "engine/stream.h"
#include "engine/stream_observer.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/training_rig.h"

namespace {

using arbalest::tests::RigOptions;
using arbalest::tests::TrainingRig;

// Holds tasks of one label until released, counts finished tasks by label, and drops waits of one label.
class Latch final : public arbalest::engine::StreamObserver {
 public:
  void before_task(const arbalest::engine::Stream&, const char* label) override {
    std::unique_lock lock(mutex_);
    if (label != held_) return;
    changed_.wait(lock, [&] { return label != held_; });
  }
  void after_task(const arbalest::engine::Stream&, const char* label) override {
    const std::lock_guard lock(mutex_);
    ++finished_[label];
    changed_.notify_all();
  }
  bool drops_wait(const arbalest::engine::Stream&, const char* label) override {
    const std::lock_guard lock(mutex_);
    return label == dropped_;
  }

  void hold(const std::string& label) { set(held_, label); }
  void release() { set(held_, ""); }
  void drop_waits(const std::string& label) { set(dropped_, label); }
  int finished(const std::string& label) {
    const std::lock_guard lock(mutex_);
    return finished_[label];
  }
  // True once `count` tasks of `label` have finished; false if they have not after the grace period.
  bool reaches(const std::string& label, int count, std::chrono::milliseconds grace) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, grace, [&] { return finished_[label] >= count; });
  }

 private:
  void set(std::string& member, const std::string& value) {
    const std::lock_guard lock(mutex_);
    member = value;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string held_;
  std::string dropped_;
  std::map<std::string, int> finished_;
};

constexpr std::chrono::milliseconds kGrace{300};       // nothing is expected to happen
constexpr std::chrono::milliseconds kPatience{60000};  // something is

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

// The devices of a run, and the pass that reads their replicas there.
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

// Whether tasks of `label` end beyond the first `expected`: not even one may, or all `more` must if a wait was dropped.
bool goes_beyond(Latch& latch, const std::string& label, int expected, int more, const std::string& dropped) {
  return dropped.empty() ? latch.reaches(label, expected + 1, kGrace)
                         : latch.reaches(label, expected + more, kPatience);
}

// Whether updates run while averaging's read is held.
bool update_overtakes_read(const Reader& reader, const std::string& dropped) {
  Latch latch;
  const RigOptions options = options_on(reader.devices, latch);
  latch.hold(reader.label);
  latch.drop_waits(dropped);
  TrainingRig rig(options);
  rig.scheduler().advance(rig.ring(), 1);
  CHECK(latch.reaches("gradient", learners_of(options), kPatience));
  const bool overtakes = goes_beyond(latch, "update", 0, learners_of(options), dropped);
  latch.release();
  return overtakes;
}

// Whether averaging reads replicas whose update is held. Round 0 has no update before it, so its read runs.
bool read_overtakes_update(const Reader& reader, const std::string& dropped) {
  Latch latch;
  const RigOptions options = options_on(reader.devices, latch);
  const int devices = static_cast<int>(reader.devices.size());
  latch.hold("update");
  latch.drop_waits(dropped);
  TrainingRig rig(options);
  rig.scheduler().advance(rig.ring(), 2);
  CHECK(latch.reaches(reader.label, devices, kPatience));
  const bool overtakes = goes_beyond(latch, reader.label, devices, devices, dropped);
  latch.release();
  return overtakes;
}

}  // namespace

TEST_CASE("with the all-reduce held, learners finish update t and gradient t+1 and none update t+1", "[training]") {
  const auto devices = arbalest::tests::two_devices(arbalest::engine::host::allowed_cores());
  if (devices.empty()) arbalest::tests::skip_test("needs two cores");
  Latch latch;
  const RigOptions options = options_on(devices, latch);
  const int learners = learners_of(options);
  latch.hold("all-reduce");
  {
    TrainingRig rig(options);
    rig.scheduler().advance(rig.ring(), 2);
    CHECK(latch.reaches("gradient", 2 * learners, kPatience));
    CHECK(latch.reaches("update", learners, kPatience));
    CHECK_FALSE(latch.reaches("update", learners + 1, kGrace));
    CHECK(latch.finished("all-reduce") == 0);
    latch.release();
    rig.scheduler().drain();
    CHECK(latch.finished("update") == 2 * learners);
  }
}

TEST_CASE("an update waits for averaging's read, and only because of its event", "[training]") {
  for (const Reader& reader : readers()) {
    CHECK_FALSE(update_overtakes_read(reader, ""));
    if (!arbalest::tests::kSanitized) CHECK(update_overtakes_read(reader, kWaitForRead));  // a data race, on purpose
  }
}

TEST_CASE("averaging's read waits for the updates, and only because of their events", "[training]") {
  for (const Reader& reader : readers()) {
    CHECK_FALSE(read_overtakes_update(reader, ""));
    if (!arbalest::tests::kSanitized) CHECK(read_overtakes_update(reader, kWaitForUpdates));
  }
}

TEST_CASE("a mini-batch that would overwrite the result of one under way is refused", "[training]") {
  Latch latch;
  RigOptions options;
  options.observer = &latch;
  TrainingRig rig(options);
  arbalest::learners::Learner& learner = *rig.pools().front()->learners().front();
  const arbalest::engine::StepParameters step{.learning_rate = 0.1F};
  latch.hold("gradient");
  arbalest::learners::Ticket oldest;
  for (int i = 0; i < arbalest::scheduler::result_slots(options.synchronization.period); ++i) {
    arbalest::learners::Ticket ticket = learner.gradient(*rig.ring().next(), step);
    learner.update(ticket, {});
    if (i == 0) oldest = ticket;
  }
  const arbalest::dataflow::Batch next = *rig.ring().next();
  CHECK_THROWS_AS(learner.gradient(next, step), arbalest::engine::Error);
  CHECK_THROWS_AS(learner.evaluate(next, {}), arbalest::engine::Error);
  latch.release();
  oldest.done.synchronize();
  CHECK_NOTHROW(learner.gradient(next, step));
}
