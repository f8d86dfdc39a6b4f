// All-reduce in memory: every rank's averaging thread enters, each sums its slice over all ranks in rank order and
// writes the sum to everybody, and none leaves before all have.
#include "engine/collective.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "engine/cpu/stream.h"
#include "engine/error.h"

namespace arbalest::engine {

namespace {

// A barrier that a failing rank can break for all.
class Meeting {
 public:
  explicit Meeting(int ranks) : ranks_(ranks) {}

  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    check();
    const std::uint64_t round = round_;
    if (++arrived_ == ranks_) {
      arrived_ = 0;
      ++round_;
      all_here_.notify_all();
      return;
    }
    all_here_.wait(lock, [&] { return round_ != round || broken_; });
    if (round_ == round) check();
  }

  void break_up() noexcept {
    {
      const std::lock_guard lock(mutex_);
      broken_ = true;
    }
    all_here_.notify_all();
  }

 private:
  void check() const {
    if (broken_) fail(ErrorKind::kPeer, "another device of the all-reduce has failed");
  }

  const int ranks_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  bool broken_ = false;
};

class MemoryCollective final : public Collective {
 public:
  explicit MemoryCollective(int ranks)
      : meeting_(ranks), data_(static_cast<std::size_t>(ranks), nullptr), prepared_(data_.size()) {}

  int ranks() const noexcept override { return static_cast<int>(data_.size()); }

  void all_reduce_sum(Stream& stream, int rank, float* data, std::size_t elements, const char* label) override {
    if (ranks() == 1) return;
    try {
      stream.launch(prepared(static_cast<std::size_t>(rank), data, elements), label);
    } catch (...) {
      meeting_.break_up();  // peers may have enqueued their part already
      throw;
    }
  }

 private:
  // A rank's part in the reduction of one vector.
  class Part final : public cpu::Task {
   public:
    Part(MemoryCollective& collective, std::size_t rank, float* data, std::size_t elements)
        : collective_(collective), rank_(rank), data_(data), elements_(elements) {}

    void run(const cpu::TaskContext&) override {
      collective_.data_[rank_] = data_;
      collective_.meeting_.arrive_and_wait();
      collective_.sum_slice(rank_, elements_);
      collective_.meeting_.arrive_and_wait();
    }
    void abandon() noexcept override { collective_.meeting_.break_up(); }

   private:
    MemoryCollective& collective_;
    std::size_t rank_;
    float* data_;
    std::size_t elements_;
  };
  struct Prepared {
    const float* data;
    std::size_t elements;
    cpu::CpuTaskGraph graph;
  };

  // Made when a vector is reduced for the first time, and kept: a round allocates nothing.
  const cpu::CpuTaskGraph& prepared(std::size_t rank, float* data, std::size_t elements) {
    std::deque<Prepared>& known = prepared_[rank];
    for (const Prepared& entry : known) {
      if (entry.data == data && entry.elements == elements) return entry.graph;
    }
    cpu::CpuTaskGraph graph;
    graph.entries.push_back({std::make_unique<Part>(*this, rank, data, elements), "sum over devices"});
    return known.emplace_back(Prepared{data, elements, std::move(graph)}).graph;
  }

  void sum_slice(std::size_t rank, std::size_t elements) {
    constexpr std::size_t kBlock = 1024;  // fits the first-level cache
    std::array<float, kBlock> sums;
    const std::size_t end = elements * (rank + 1) / data_.size();
    for (std::size_t begin = elements * rank / data_.size(); begin < end; begin += kBlock) {
      const std::size_t size = std::min(kBlock, end - begin);
      std::copy_n(data_[0] + begin, size, sums.begin());
      for (std::size_t r = 1; r < data_.size(); ++r) {
        const float* addends = data_[r] + begin;
        for (std::size_t i = 0; i < size; ++i) sums[i] += addends[i];
      }
      for (float* data : data_) std::copy_n(sums.begin(), size, data + begin);
    }
  }

  Meeting meeting_;
  std::vector<float*> data_;                    // by rank; written before the first meeting of a round, read after it
  std::vector<std::deque<Prepared>> prepared_;  // by rank; touched by the thread that enqueues its work
};

}  // namespace

std::unique_ptr<Collective> make_memory_collective(int ranks) { return std::make_unique<MemoryCollective>(ranks); }

}  // namespace arbalest::engine
