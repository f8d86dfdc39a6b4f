// Allocations that fail while work is handed to other threads. No task that reads freed memory may be left, and no
// thread may wait forever. This program replaces operator new to make a chosen allocation of a thread fail.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "dataflow/input/batches/batch_ring.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/collective.h"
#include "engine/host/pool.h"
#include "tests/support/catch.h"

namespace {

constexpr int kNever = -1;
thread_local int allocations_left = kNever;  // allocations of this thread until one fails
std::atomic<bool> has_failed{false};
std::atomic<bool> is_busy{false};  // whether the thread of busy_pool() is busy

// In its scope, `successes` allocations of this thread succeed, the next one fails, and later ones succeed.
class FailingAllocation {
 public:
  explicit FailingAllocation(int successes) {
    has_failed = false;
    allocations_left = successes;
  }
  ~FailingAllocation() { allocations_left = kNever; }
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
};

void report_failure() {
  has_failed = true;
  has_failed.notify_all();
}

}  // namespace

void* operator new(std::size_t bytes) {
  const bool fails = allocations_left == 0;
  if (allocations_left != kNever) --allocations_left;
  void* memory = fails ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (fails) report_failure();
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// AddressSanitizer's own operator new would not match the delete below.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes == 0 ? 1 : bytes); }
// If it were inlined, GCC 12 would report a call of free on memory from operator new.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using arbalest::dataflow::BatchRing;
using arbalest::dataflow::InputDescription;
using arbalest::dataflow::InputTensor;
using arbalest::engine::host::Pool;

// The pool's only thread is busy until an allocation fails. Its queue has room for one more task without growing.
std::unique_ptr<Pool> busy_pool() {
  has_failed = false;
  auto pool = std::make_unique<Pool>(1);
  is_busy = false;
  pool->submit([] {
    is_busy = true;
    is_busy.notify_all();
    has_failed.wait(false);
  });
  is_busy.wait(false);
  for (int i = 0; i < 15; ++i) pool->submit([] {});
  return pool;
}

// A slow dataset that counts reads.
class CountingDataset final : public arbalest::dataflow::Dataset {
 public:
  const std::string& name() const noexcept override { return name_; }
  const InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return 64; }
  void read(std::int64_t, const arbalest::dataflow::ExamplePosition&,
            std::span<const InputTensor> features) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    features.front().as<float>().front() = 1.0F;
    ++reads;
  }
  void read_label(std::int64_t, const InputTensor& label) const override { label.as<std::int32_t>().front() = 0; }

  mutable std::atomic<int> reads{0};

 private:
  std::string name_ = "counting";
  InputDescription description_ = arbalest::dataflow::image_input({1, 1, 1}, 10);
};

}  // namespace

TEST_CASE("for_each that cannot submit all its tasks waits for the submitted ones", "[memory]") {
  const auto pool = busy_pool();
  std::atomic<int> ended{0};
  const std::function<void(std::size_t)> body = [&ended](std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++ended;
  };
  const auto run = [&] {
    const FailingAllocation failing(0);
    pool->for_each(100, body);
  };
  CHECK_THROWS_AS(run(), std::bad_alloc);
  const int ended_before = ended;
  pool->drain();
  CHECK(ended_before > 0);
  CHECK(ended == ended_before);
}

TEST_CASE("a batch ring whose construction fails at any allocation leaves no task behind", "[memory]") {
  const auto device = arbalest::engine::open_device(arbalest::engine::parse_device("cpu"));
  bool failed = true;
  for (int successes = 0; failed; ++successes) {
    CAPTURE(successes);
    const auto pool = busy_pool();
    const CountingDataset data;
    arbalest::dataflow::SequentialOrder order(64, 4);
    try {
      const FailingAllocation failing(successes);
      const BatchRing ring(data, order, *device, *pool, 8);
      failed = has_failed;
      report_failure();  // the pool continues
    } catch (const std::bad_alloc&) {
    }
    const int reads_before = data.reads;
    pool->drain();
    CHECK(data.reads == reads_before);
  }
}

TEST_CASE("an all-reduce that runs out of memory enqueues nothing and can be called again", "[memory]") {
  const auto device = arbalest::engine::open_device(arbalest::engine::parse_device("cpu"));
  const auto collective = arbalest::engine::make_memory_collective(2);
  const auto stream = device->create_stream({.name = "rank 0"});
  const auto other = device->create_stream({.name = "rank 1"});
  std::vector<float> ones(8, 1.0F);
  std::vector<float> twos(8, 2.0F);
  const std::vector<arbalest::engine::CollectivePart> parts{{stream.get(), ones.data()}, {other.get(), twos.data()}};
  int calls = 0;
  for (bool failed = true; failed; ++calls) {
    failed = false;
    try {
      const FailingAllocation failing(calls);
      collective->all_reduce_sum(parts, ones.size(), "all-reduce");
    } catch (const arbalest::engine::Error& error) {
      CHECK(error.kind() == arbalest::engine::ErrorKind::kOutOfMemory);
      failed = true;
    }
  }
  CHECK(calls > 1);
  stream->record().synchronize();
  other->record().synchronize();
  CHECK(ones == std::vector<float>(8, 3.0F));
  CHECK(twos == ones);
}
