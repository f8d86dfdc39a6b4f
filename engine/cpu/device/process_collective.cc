// All-reduce over the CPU devices of several processes. The streams of this process add their vectors into that of the
// first device, whose stream exchanges the sum with the other processes. Then all streams copy the result.
#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/collective.h"
#include "engine/cpu/device/errors.h"
#include "engine/cpu/device/meeting.h"
#include "engine/cpu/device/stream.h"
#include "engine/cpu/passes/pairwise_blocks.h"
#include "engine/error.h"
#include "engine/process/world.h"

namespace arbalest::engine {

namespace {

// What belongs to the enqueued all-reduces, first in, first out. The host thread adds it, and a stream takes it.
template <typename Value>
class Enqueued {
 public:
  void push(const Value& value) {
    const std::lock_guard lock(mutex_);
    ARBALEST_CHECK(end_ - begin_ < values_.size());
    values_[end_++ % values_.size()] = value;
  }
  Value pop() {
    const std::lock_guard lock(mutex_);
    ARBALEST_CHECK(begin_ < end_);
    return values_[begin_++ % values_.size()];
  }

 private:
  std::mutex mutex_;
  std::array<Value, 2048> values_{};  // more than a stream's queue holds
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// The sum of one vector per device of this process and of the others. It is prepared on its first use and kept.
class PreparedSum {
 public:
  PreparedSum(std::span<const CollectivePart> parts, std::size_t elements, process::World& world)
      : parts_(parts.begin(), parts.end()),
        elements_(elements),
        world_(world),
        exchange_(world.prepare_all_reduce(std::span(parts.front().values, elements))),
        graphs_(parts.size()),
        previous_work_(parts.size()),
        meeting_(static_cast<int>(parts.size())) {
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      values_.push_back(parts[rank].values);
      graphs_[rank].entries.push_back({std::make_unique<Share>(*this, rank), "sum over devices"});
    }
  }

  bool is_of(std::span<const CollectivePart> parts, std::size_t elements) const {
    return elements_ == elements && std::ranges::equal(parts_, parts);
  }

  void enqueue(std::uint64_t turn, const char* label) {
    try {
      turns_.push(turn);
      for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
        previous_work_[rank].push(parts_[rank].stream->record());
        parts_[rank].stream->launch(graphs_[rank], label);
      }
    } catch (const Error& error) {
      give_up(error);  // the previous ranks already have their shares
      throw;
    }
  }

 private:
  // The work of one device.
  class Share final : public cpu::Task {
   public:
    Share(PreparedSum& sum, std::size_t rank) : sum_(sum), rank_(rank) {}

    void run(const cpu::TaskContext&) override {
      sum_.previous_work_[rank_].pop();
      is_running_ = true;
      sum_.meeting_.arrive_and_wait();
      sum_.add_slice(rank_);
      sum_.meeting_.arrive_and_wait();
      if (rank_ == 0) sum_.exchange();
      sum_.meeting_.arrive_and_wait();
      if (rank_ != 0) std::copy_n(sum_.values_[0], sum_.elements_, sum_.parts_[rank_].values);
      sum_.meeting_.arrive_and_wait();
      is_running_ = false;
    }

    void abandon() noexcept override {
      // If run() has failed, another device or exchange() has said why.
      if (std::exchange(is_running_, false)) return sum_.meeting_.break_up();
      const Event previous = sum_.previous_work_[rank_].pop();
      ARBALEST_CHECK(previous.is_complete());
      try {
        previous.synchronize();
      } catch (const Error& error) {
        sum_.give_up(error);
      }
    }

   private:
    PreparedSum& sum_;
    std::size_t rank_;
    bool is_running_ = false;
  };

  void add_slice(std::size_t rank) {
    if (parts_.size() == 1) return;
    constexpr std::size_t kBlock = cpu::kPairwiseBlock;
    std::array<float, kBlock> sums;
    const std::size_t end = elements_ * (rank + 1) / parts_.size();
    for (std::size_t begin = elements_ * rank / parts_.size(); begin < end; begin += kBlock) {
      const std::size_t size = std::min(kBlock, end - begin);
      cpu::sum_vectors(values_, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(size), sums.data());
      std::copy_n(sums.begin(), size, parts_[0].values + begin);
    }
  }

  void exchange() {
    try {
      cpu::translate_errors([this] {
        exchange_->start(turns_.pop());
        exchange_->wait();
      });
    } catch (const Error& error) {
      give_up(error);
      throw;
    }
  }

  // The error comes before the other devices, which fail because of it, can announce theirs.
  void give_up(const Error& error) noexcept {
    world_.announce_failure(error);
    meeting_.break_up();
  }

  const std::vector<CollectivePart> parts_;
  std::vector<const float*> values_;  // vectors of the parts
  const std::size_t elements_;
  process::World& world_;
  const std::unique_ptr<process::PreparedAllReduce> exchange_;
  std::vector<cpu::CpuTaskGraph> graphs_;       // by rank
  std::vector<Enqueued<Event>> previous_work_;  // by rank: the point before each all-reduce
  cpu::Meeting meeting_;
  Enqueued<std::uint64_t> turns_;
};

class ProcessCollective final : public Collective {
 public:
  ProcessCollective(int local_ranks, process::World& world) : local_ranks_(local_ranks), world_(world) {}

  int ranks() const noexcept override { return local_ranks_; }
  bool spans_processes() const noexcept override { return true; }

  void all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) override {
    ARBALEST_CHECK(static_cast<int>(parts.size()) == local_ranks_);
    PreparedSum& sum = cpu::translate_errors([&]() -> PreparedSum& { return prepared(parts, elements); });
    sum.enqueue(world_.next_turn(), label);
  }

  void wait(const Event& event) override { event.synchronize(); }

 private:
  PreparedSum& prepared(std::span<const CollectivePart> parts, std::size_t elements) {
    for (PreparedSum& sum : sums_) {
      if (sum.is_of(parts, elements)) return sum;
    }
    return sums_.emplace_back(parts, elements, world_);
  }

  const int local_ranks_;
  process::World& world_;
  std::deque<PreparedSum> sums_;
};

}  // namespace

std::unique_ptr<Collective> make_process_collective(int local_ranks, process::World& world) {
  if (world.size() == 1) return make_memory_collective(local_ranks);
  return std::make_unique<ProcessCollective>(local_ranks, world);
}

}  // namespace arbalest::engine
