// Streams, events and recordings. No test reads a clock. If the order matters, a latch holds a task until the test has
// checked that a later task has not run yet.
#include "engine/cpu/runtime/stream.h"

#include <future>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "engine/base/error.h"
#include "engine/host/completions.h"
#include "engine/stream_observer.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::Event;
using engine::Stream;
using engine::cpu::CpuStream;
using engine::cpu::make_task;
using engine::cpu::TaskContext;

// A stream with a door: work enqueued after `hold()` runs only after `open()`.
class TestStream {
 public:
  explicit TestStream(const std::string& name, int threads = 1, engine::StreamObserver* observer = nullptr)
      : stream_({.name = "cpu " + name, .threads = threads, .observer = observer}) {}
  ~TestStream() { open(); }  // so that the worker does not wait forever after a failed check

  CpuStream& operator*() { return stream_; }
  CpuStream* operator->() { return &stream_; }

  template <typename Function>
  void submit(Function function, const char* label = "task") {
    stream_.submit(make_task([function](const TaskContext&) { function(); }), label);
  }
  void hold() {
    submit([this] { door_.wait(); }, "hold");
  }
  void open() {
    if (!door_.try_wait()) door_.count_down();
  }

 private:
  std::latch door_{1};
  CpuStream stream_;  // destroyed first
};

std::string error_of(const Event& event) {
  try {
    event.synchronize();
  } catch (const engine::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("a stream runs its tasks in order") {
  TestStream stream("a");
  std::vector<int> order;
  for (int i = 0; i < 5000; ++i) stream.submit([&order, i] { order.push_back(i); });
  stream->record().synchronize();
  REQUIRE(order.size() == 5000);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("enqueuing does not wait for the work, and an event is complete only after it") {
  TestStream stream("a");
  CHECK(Event().is_complete());
  CHECK(stream->record().is_complete());
  stream.hold();
  const Event held = stream->record();
  stream.submit([] {});
  const Event behind = stream->record();
  CHECK_FALSE(held.is_complete());
  CHECK_FALSE(behind.is_complete());
  stream.open();
  behind.synchronize();
  CHECK(held.is_complete());
  CHECK(behind.is_complete());
}

TEST_CASE("copies and zero fills run in order with other tasks") {
  TestStream stream("a");
  const std::vector<float> source{1, 2, 3};
  std::vector<float> target{9, 9, 9, 9};
  stream->copy(target.data(), source.data(), 3 * sizeof(float), "copy");
  stream->fill_zero(target.data() + 1, sizeof(float), "zero");
  stream->record().synchronize();
  CHECK(target == std::vector<float>{1, 0, 3, 9});
}

TEST_CASE("delivered data is in place when the event is complete") {
  TestStream stream("a");
  std::vector<float> source{1, 2, 3};
  std::vector<float> target{9, 9, 9, 9};
  stream.hold();
  stream.submit([&source] { source[1] = 5; });
  const Event delivered = stream->deliver(target.data(), source.data(), 3 * sizeof(float), "result");
  CHECK_FALSE(delivered.is_complete());
  CHECK(target[1] == 9);
  stream.open();
  delivered.synchronize();
  CHECK(target == std::vector<float>{1, 5, 3, 9});
}

TEST_CASE("a wait for another stream's event orders the two streams") {
  TestStream first("a");
  TestStream second("b");
  std::vector<int> order;
  first.hold();
  first.submit([&order] { order.push_back(1); });
  const Event produced = first->record();
  second->wait(produced, "wait for a");
  second.submit([&order] { order.push_back(2); });
  const Event consumed = second->record();
  CHECK_FALSE(consumed.is_complete());
  first.open();
  consumed.synchronize();
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("an event covers only the work before it") {
  TestStream first("a");
  TestStream second("b");
  first.submit([] {});
  const Event early = first->record();
  first.hold();
  second->wait(early, "wait for the early point");
  second->record().synchronize();  // would not return if the wait covered the held task
  CHECK_FALSE(first->record().is_complete());
  first.open();
}

TEST_CASE("waiting for an event that was not recorded is an error") {
  TestStream first("a");
  TestStream second("b");
  const Event never_recorded(&*first, 1);
  CHECK_THROWS_AS(second->wait(never_recorded, "wait"), engine::Error);
}

TEST_CASE("an error travels with events and names the stream and the task that failed") {
  TestStream first("a");
  TestStream second("b");
  bool ran_after = false;
  const Event before = first->record();
  first.submit([] { engine::fail(engine::ErrorKind::kDiverged, "the loss is NaN"); }, "forward of ip2");
  first.submit([&ran_after] { ran_after = true; }, "later");
  const Event failed = first->record();
  second->wait(failed, "wait for a");
  second.submit([&ran_after] { ran_after = true; }, "after the wait");
  const Event carried = second->record();

  CHECK(error_of(carried) == "cpu a: forward of ip2: the loss is NaN");
  CHECK(error_of(failed) == error_of(carried));
  CHECK(error_of(before) == "no error");
  CHECK_FALSE(ran_after);
  try {
    carried.synchronize();
    FAIL("the event carries no error");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kDiverged);
  }
}

TEST_CASE("exceptions of other types become errors") {
  TestStream standard("a");
  standard.submit([] { throw std::runtime_error("primitive failed"); }, "conv1");
  CHECK(error_of(standard->record()) == "cpu a: conv1: primitive failed");

  TestStream memory("b");
  memory.submit([] { throw std::bad_alloc(); }, "conv1");
  try {
    memory->record().synchronize();
    FAIL("the event carries no error");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kOutOfMemory);
  }
}

TEST_CASE("a recording runs nothing until it is launched, and can be launched repeatedly") {
  TestStream stream("a");
  int runs = 0;
  const float source = 3.0F;
  float target = 0.0F;
  stream->begin_recording({});
  stream.submit([&runs] { ++runs; });
  stream->copy(&target, &source, sizeof(float), "copy");
  const auto graph = stream->end_recording();
  stream->record().synchronize();
  CHECK(runs == 0);

  for (int i = 0; i < 100; ++i) stream->launch(*graph, "step");
  stream->record().synchronize();
  CHECK(runs == 100);
  CHECK(target == 3.0F);
}

TEST_CASE("waits, events and launches are refused while recording") {
  TestStream stream("a");
  TestStream other("b");
  other.submit([] {});
  const Event event = other->record();
  stream->begin_recording({});
  CHECK_THROWS_AS(stream->wait(event, "wait"), engine::Error);
  CHECK_THROWS_AS(stream->record(), engine::Error);
  CHECK_THROWS_AS(stream->begin_recording({}), engine::Error);
  stream->end_recording();
  CHECK_THROWS_AS(stream->end_recording(), engine::Error);
}

TEST_CASE("an error in a replay names the mini-batch, the launch and the recorded task") {
  TestStream stream("a");
  stream->begin_recording({});
  stream.submit([] {}, "conv1");
  stream.submit([] { engine::fail(engine::ErrorKind::kData, "bad label"); }, "loss");
  const auto graph = stream->end_recording();
  stream->begin_task(7, engine::WorkPhase::kTraining);
  stream->launch(*graph, "gradient");
  CHECK(error_of(stream->record()) == "cpu a, mini-batch 7: gradient: loss: bad label");
}

TEST_CASE("a full queue makes the host wait, and loses nothing") {
  TestStream stream("a");
  constexpr int kTasks = 3000;  // more than the queue's capacity
  int runs = 0;
  stream.hold();
  auto host = std::async(std::launch::async, [&] {
    for (int i = 0; i < kTasks; ++i) stream.submit([&runs] { ++runs; });
  });
  stream.open();
  host.get();
  stream->record().synchronize();
  CHECK(runs == kTasks);
}

TEST_CASE("a destroyed stream finishes its work first") {
  int runs = 0;
  {
    TestStream stream("a");
    for (int i = 0; i < 100; ++i) stream.submit([&runs] { ++runs; });
  }
  CHECK(runs == 100);
}

TEST_CASE("one-time tasks are freed before the next event is complete") {
  TestStream stream("a");
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = owned;
  stream.submit([kept = std::move(owned)] {});
  stream->record().synchronize();
  CHECK(watched.expired());
}

class Recorder final : public engine::StreamObserver {
 public:
  void before_task(const Stream&, const engine::TaskInfo& task) override { add(std::string("before ") + task.label); }
  void after_task(const Stream& stream, const engine::TaskInfo& task) override {
    add("after " + std::string(task.label) + " on " + stream.name());
  }
  bool drops_wait(const Stream&, const char* label) override { return dropped == label; }

  std::string dropped;
  std::vector<std::string> events;

 private:
  void add(std::string event) {
    const std::lock_guard lock(mutex_);
    events.push_back(std::move(event));
  }
  std::mutex mutex_;
};

TEST_CASE("an observer sees the start and end of each task") {
  Recorder recorder;
  TestStream stream("a", 1, &recorder);
  stream.submit([] {}, "one");
  stream.submit([] {}, "two");
  stream->record().synchronize();
  CHECK(recorder.events ==
        std::vector<std::string>{"before one", "after one on cpu a", "before two", "after two on cpu a"});
}

TEST_CASE("an observer can drop a wait: the ordering is gone") {
  Recorder recorder;
  recorder.dropped = "wait for a";
  TestStream first("a");
  TestStream second("b", 1, &recorder);
  first.hold();
  second->wait(first->record(), "wait for a");
  second->record().synchronize();  // would not return if the wait were in force
  CHECK_FALSE(first->record().is_complete());
}

TEST_CASE("reports tell which stream came first, and after which work") {
  engine::Completions completions;
  TestStream first("a");
  TestStream second("b");
  int done = 0;
  first.hold();
  first.submit([&done] { done = 1; });
  first->report(completions, 7);
  second->report(completions, 8);
  CHECK(completions.take() == 8);
  CHECK(done == 0);
  std::future<std::uint64_t> next = std::async(std::launch::async, [&] { return completions.take(); });
  first.open();
  CHECK(next.get() == 7);
  CHECK(done == 1);
}

TEST_CASE("a stream that has failed still reports") {
  engine::Completions completions;
  TestStream stream("a");
  stream.submit([] { throw std::runtime_error("broken"); });
  const Event failed = stream->record();
  stream->report(completions, 3);
  CHECK(completions.take() == 3);
  CHECK_THAT(error_of(failed), ContainsSubstring("broken"));
}

TEST_CASE("events of streams that cannot report are watched") {
  engine::Completions completions;
  TestStream watched("a");
  TestStream reporting("b");
  watched.hold();
  completions.watch(watched->record(), 1);
  reporting->report(completions, 2);
  CHECK(completions.take() == 2);
  watched.open();
  CHECK(completions.take() == 1);
  completions.watch(watched->record(), 4);
  completions.forget();
  reporting->report(completions, 5);
  CHECK(completions.take() == 5);
}

TEST_CASE("a stream on the caller has done its work when the function returns, on the same thread") {
  CpuStream stream({.name = "cpu a", .on_caller = true});
  std::thread::id ran_on;
  stream.submit(make_task([&](const TaskContext&) { ran_on = std::this_thread::get_id(); }), "task");
  CHECK(ran_on == std::this_thread::get_id());
  const std::vector<float> source{1, 2, 3};
  std::vector<float> target{9, 9, 9};
  const Event delivered = stream.deliver(target.data(), source.data(), 2 * sizeof(float), "copy");
  CHECK(delivered.is_complete());
  CHECK(target == std::vector<float>{1, 2, 9});

  stream.begin_recording({});
  int runs = 0;
  stream.submit(make_task([&](const TaskContext&) { ++runs; }), "recorded");
  const auto graph = stream.end_recording();
  CHECK(runs == 0);
  for (int i = 0; i < 2000; ++i) stream.launch(*graph, "launch");  // more than a queue holds
  CHECK(runs == 2000);
}

TEST_CASE("a stream on the caller waits for other streams, and keeps its first error") {
  TestStream other("other");
  CpuStream stream({.name = "cpu a", .on_caller = true});
  int order = 0;
  int before = 0;
  other.hold();
  other.submit([&] { before = ++order; });
  const Event event = other->record();
  std::thread opener([&] { other.open(); });
  stream.wait(event, "wait");
  CHECK(before == 1);
  opener.join();

  stream.submit(make_task([](const TaskContext&) { engine::fail(engine::ErrorKind::kDevice, "broken"); }), "first");
  bool is_skipped = true;
  stream.submit(make_task([&](const TaskContext&) { is_skipped = false; }), "second");
  CHECK(is_skipped);
  CHECK(error_of(stream.record()) == "cpu a: first: broken");
}

TEST_CASE("many streams in a ring of events finish and keep their order") {
  constexpr int kStreams = 4;
  constexpr int kRounds = 200;
  std::vector<std::unique_ptr<TestStream>> streams;
  for (int s = 0; s < kStreams; ++s) streams.push_back(std::make_unique<TestStream>(std::to_string(s)));
  std::vector<int> order;  // written by one stream at a time, because the events order them
  Event last;
  for (int i = 0; i < kRounds * kStreams; ++i) {
    TestStream& stream = *streams[static_cast<std::size_t>(i % kStreams)];
    stream->wait(last, "previous");
    stream.submit([&order, i] { order.push_back(i); });
    last = stream->record();
  }
  last.synchronize();
  REQUIRE(order.size() == kRounds * kStreams);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

}  // namespace
}  // namespace arbalest::tests
