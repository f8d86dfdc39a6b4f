// All-reduce in memory. Every rank's stream thread enters, sums its slice over all ranks by the pairwise tree over rank
// numbers, and writes the sum to all ranks. No thread leaves before all have finished.
#include "engine/collective.h"

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "engine/base/error.h"
#include "engine/cpu/device/meeting.h"
#include "engine/cpu/passes/pairwise_blocks.h"
#include "engine/cpu/runtime/errors.h"
#include "engine/cpu/runtime/stream.h"

namespace arbalest::engine {

namespace {

// The sum of one vector per rank. It is prepared on its first use and kept, so that a round allocates nothing.
class PreparedSum {
 public:
  PreparedSum(std::span<const CollectivePart> parts, std::size_t elements)
      : parts_(parts.begin(), parts.end()),
        elements_(elements),
        graphs_(parts.size()),
        meeting_(static_cast<int>(parts.size())) {
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      values_.push_back(parts[rank].values);
      graphs_[rank].entries.push_back({std::make_unique<Share>(*this, rank), "sum over devices"});
    }
  }

  bool is_of(std::span<const CollectivePart> parts, std::size_t elements) const {
    return elements_ == elements && std::ranges::equal(parts_, parts);
  }

  void enqueue(const char* label) {
    try {
      for (std::size_t rank = 0; rank < parts_.size(); ++rank) parts_[rank].stream->launch(graphs_[rank], label);
    } catch (...) {
      meeting_.break_up();  // the previous ranks already have their shares
      throw;
    }
  }

 private:
  // The work of one rank.
  class Share final : public cpu::Task {
   public:
    Share(PreparedSum& sum, std::size_t rank) : sum_(sum), rank_(rank) {}

    void run(const cpu::TaskContext&) override {
      sum_.meeting_.arrive_and_wait();
      sum_.add_slice(rank_);
      sum_.meeting_.arrive_and_wait();
    }
    void abandon() noexcept override { sum_.meeting_.break_up(); }

   private:
    PreparedSum& sum_;
    std::size_t rank_;
  };

  void add_slice(std::size_t rank) {
    constexpr std::size_t kBlock = cpu::kPairwiseBlock;
    std::array<float, kBlock> sums;
    const std::size_t end = elements_ * (rank + 1) / parts_.size();
    for (std::size_t begin = elements_ * rank / parts_.size(); begin < end; begin += kBlock) {
      const std::size_t size = std::min(kBlock, end - begin);
      cpu::sum_vectors(values_, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(size), sums.data());
      for (const CollectivePart& part : parts_) std::copy_n(sums.begin(), size, part.values + begin);
    }
  }

  const std::vector<CollectivePart> parts_;
  std::vector<const float*> values_;  // vectors of the parts
  const std::size_t elements_;
  std::vector<cpu::CpuTaskGraph> graphs_;  // by rank
  cpu::Meeting meeting_;
};

class MemoryCollective final : public Collective {
 public:
  explicit MemoryCollective(int ranks) : ranks_(ranks) {}

  int ranks() const noexcept override { return ranks_; }

  void all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) override {
    ARBALEST_CHECK(static_cast<int>(parts.size()) == ranks_);
    if (ranks_ > 1) cpu::translate_errors([&]() -> PreparedSum& { return prepared(parts, elements); }).enqueue(label);
  }

  void wait(const Event& event) override { event.synchronize(); }

 private:
  PreparedSum& prepared(std::span<const CollectivePart> parts, std::size_t elements) {
    for (PreparedSum& sum : sums_) {
      if (sum.is_of(parts, elements)) return sum;
    }
    return sums_.emplace_back(parts, elements);
  }

  const int ranks_;
  std::deque<PreparedSum> sums_;
};

}  // namespace

std::unique_ptr<Collective> make_memory_collective(int ranks) { return std::make_unique<MemoryCollective>(ranks); }

}  // namespace arbalest::engine
