// Sums over the CPU devices of several processes: the memory collective adds the vectors of this process, the
// stream of the first device exchanges the sum with the other processes, and the other streams copy the result.
#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/collective.h"
#include "engine/cpu/runtime/errors.h"
#include "engine/cpu/runtime/stream.h"
#include "engine/process/world.h"

namespace arbalest::engine {

namespace {

// Exchanges one vector with the other processes. It is a task of the first device's stream.
class Exchange final : public cpu::Task {
 public:
  // `events` is the number of events of a run.
  Exchange(std::span<float> values, std::size_t events, process::World& world)
      : world_(world), sum_(world.prepare_all_reduce(values)), turns_(kMostRuns), events_(kMostRuns * events) {}

  // The host thread calls this before it enqueues a run. If one of the streams fails before its event, the other
  // processes get to know its error.
  void prepare_run(std::uint64_t turn, std::span<const Event> events) {
    const std::lock_guard lock(mutex_);
    ARBALEST_CHECK(end_ - begin_ < kMostRuns);
    turns_[end_ % kMostRuns] = turn;
    std::ranges::copy(events, events_of(end_).begin());
    ++end_;
  }

  void run(const cpu::TaskContext&) override {
    has_run_ = true;
    try {
      cpu::translate_errors([this] {
        sum_->start(turns_[first_run() % kMostRuns]);
        sum_->wait();
      });
    } catch (const Error& error) {
      world_.announce_failure(error);
      throw;
    }
    drop_first();
    has_run_ = false;
  }

  void abandon() noexcept override {
    if (std::exchange(has_run_, false)) return drop_first();  // run() has announced the error
    for (const Event& event : events_of(first_run())) {
      try {
        if (event.is_complete()) event.synchronize();
      } catch (const Error& error) {
        world_.announce_failure(error);  // only the first error counts
      }
    }
    drop_first();
  }

 private:
  static constexpr std::size_t kMostRuns = 2048;  // more than a stream's queue holds

  std::span<Event> events_of(std::size_t run) {
    const std::size_t events = events_.size() / kMostRuns;
    return std::span(events_).subspan(run % kMostRuns * events, events);
  }
  std::size_t first_run() {
    const std::lock_guard lock(mutex_);
    ARBALEST_CHECK(begin_ < end_);
    return begin_;
  }
  void drop_first() {
    const std::lock_guard lock(mutex_);
    ++begin_;
  }

  process::World& world_;
  const std::unique_ptr<process::PreparedAllReduce> sum_;
  bool has_run_ = false;
  std::mutex mutex_;
  std::vector<std::uint64_t> turns_;  // [kMostRuns]; that of run r is at r % kMostRuns
  std::vector<Event> events_;         // [kMostRuns][events]
  std::size_t begin_ = 0;             // the oldest run that has not ended
  std::size_t end_ = 0;
};

// The exchange of a vector is prepared on its first use and kept.
struct PreparedExchange {
  PreparedExchange(float* of, std::size_t count, std::size_t events, process::World& world)
      : values(of), elements(count) {
    auto task = std::make_unique<Exchange>(std::span(values, elements), events, world);
    exchange = task.get();
    graph.entries.push_back({std::move(task), "sum over processes"});
  }

  float* const values;
  const std::size_t elements;
  Exchange* exchange = nullptr;
  cpu::CpuTaskGraph graph;
};

class ProcessCollective final : public Collective {
 public:
  ProcessCollective(int local_ranks, process::World& world)
      : local_(make_memory_collective(local_ranks)),
        world_(world),
        events_(static_cast<std::size_t>(local_ranks) + 1) {}

  int ranks() const noexcept override { return local_->ranks(); }
  bool spans_processes() const noexcept override { return true; }

  void all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) override {
    ARBALEST_CHECK(static_cast<int>(parts.size()) == ranks());
    PreparedExchange& sum =
        cpu::translate_errors([&]() -> PreparedExchange& { return prepared(parts.front().values, elements); });
    try {
      enqueue(parts, sum, label);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kOutOfMemory) world_.announce_failure(error);
      throw;
    }
  }

  void wait(const Event& event) override { event.synchronize(); }

 private:
  PreparedExchange& prepared(float* values, std::size_t elements) {
    for (PreparedExchange& sum : sums_) {
      if (sum.values == values && sum.elements == elements) return sum;
    }
    return sums_.emplace_back(values, elements, events_.size(), world_);
  }

  // Two devices, for example, get these tasks. They meet in the memory sum.
  //   first:   memory sum, exchange, wait until the others have read
  //   second:  memory sum, wait for the exchange, copy
  void enqueue(std::span<const CollectivePart> parts, PreparedExchange& sum, const char* label) {
    Stream& first = *parts.front().stream;
    for (std::size_t i = 0; i < parts.size(); ++i) events_[i] = parts[i].stream->record();
    local_->all_reduce_sum(parts, sum.elements, label);
    events_.back() = first.record();
    sum.exchange->prepare_run(world_.next_turn(), events_);
    first.launch(sum.graph, label);
    const Event exchanged = first.record();
    for (const CollectivePart& part : parts.subspan(1)) {
      part.stream->wait(exchanged, label);
      part.stream->copy(part.values, sum.values, sum.elements * sizeof(float), label);
      first.wait(part.stream->record(), label);
    }
  }

  const std::unique_ptr<Collective> local_;
  process::World& world_;
  std::deque<PreparedExchange> sums_;
  std::vector<Event> events_;  // the points of the streams before the exchange
};

}  // namespace

std::unique_ptr<Collective> make_process_collective(int local_ranks, process::World& world) {
  if (world.size() == 1) return make_memory_collective(local_ranks);
  return std::make_unique<ProcessCollective>(local_ranks, world);
}

}  // namespace arbalest::engine
