// Connects threads of one process. So the communication thread, and all that stands on it, is tested without MPI.
#pragma once

#include <barrier>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/process/operations/transport.h"
#include "engine/process/world.h"

namespace arbalest::tests {

// For the threads of a test: Catch2's macros may be used in one thread only.
inline void expect(bool condition, const char* what) {
  if (!condition) engine::fail(engine::ErrorKind::kInternal, "not as expected: {}", what);
}

class MemoryNetwork {
 public:
  explicit MemoryNetwork(int ranks) : ranks_(ranks), all_open_(ranks) {}

  // Returns the world of one rank, for a thread of its own. Waits for all ranks, as MPI does. A loaded machine may run
  // a thread late, so after a failure a world never ends the test program.
  std::unique_ptr<engine::process::World> open(int rank, engine::process::WatchdogOptions watchdog = {
                                                             .peer_timeout_seconds = 60.0}) {
    return std::make_unique<engine::process::World>(
        [this, rank] {
          auto line = std::make_unique<Line>(*this, rank);
          all_open_.arrive_and_wait();
          return line;
        },
        engine::process::CommunicationOptions{
            .watchdog = std::move(watchdog), .start_timeout_seconds = kForever, .owner_ends_seconds = kForever});
  }

  // Cuts the rank off: from now on nothing comes from it or gets to it.
  void cut_off(int rank) {
    const std::lock_guard lock(mutex_);
    cut_off_.insert(rank);
  }

 private:
  using Key = std::tuple<int, int, int>;  // from, to, channel
  struct Receive {
    std::span<std::byte> bytes;
    engine::process::Notify notify;
  };
  struct Ended {
    engine::process::Notify notify;
    std::size_t bytes;
  };

  class Line final : public engine::process::Transport {
   public:
    Line(MemoryNetwork& network, int rank) : network_(network), rank_(rank) {}

    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return network_.ranks_; }
    int local_rank() const noexcept override { return rank_; }
    int local_size() const noexcept override { return network_.ranks_; }
    const std::string& host(int) const override { return network_.host_; }

    void send(int peer, int channel, std::span<const std::byte> bytes, engine::process::Notify notify) override {
      const std::lock_guard lock(network_.mutex_);
      ended_.push_back({notify, bytes.size()});
      if (network_.cut_off_.contains(rank_) || network_.cut_off_.contains(peer)) return;
      network_.messages_[{rank_, peer, channel}].emplace_back(bytes.begin(), bytes.end());
    }
    void receive(int peer, int channel, std::span<std::byte> bytes, engine::process::Notify notify) override {
      posted_[{peer, rank_, channel}].push_back({bytes, notify});
    }
    // Adds in the order of ranks, which is not that of the tree.
    void all_reduce_sum(std::span<const float> from, float* to, engine::process::Notify notify) override {
      const std::lock_guard lock(network_.mutex_);
      const std::size_t number = sums_begun_++;
      if (network_.sums_.size() <= number) network_.sums_.resize(number + 1);
      network_.sums_[number][rank_].assign(from.begin(), from.end());
      open_sums_.push_back({number, to, notify});
    }

    bool poll() override {
      match();
      add();
      const bool any = !ended_.empty();
      for (std::size_t count = ended_.size(); count > 0; --count) {
        const Ended ended = ended_.front();
        ended_.pop_front();
        ended.notify.listener->on_message(ended.notify.token, ended.bytes);
      }
      return any;
    }
    void close() override {}
    void abort(int) noexcept override {}

   private:
    struct OpenSum {
      std::size_t number;
      float* to;
      engine::process::Notify notify;
    };

    void match() {
      const std::lock_guard lock(network_.mutex_);
      for (auto& [key, receives] : posted_) {
        auto& messages = network_.messages_[key];
        while (!receives.empty() && !messages.empty()) {
          const std::vector<std::byte>& message = messages.front();
          if (message.size() > receives.front().bytes.size()) {
            engine::fail(engine::ErrorKind::kPeer, "a message is longer than its receive");
          }
          if (!message.empty()) std::memcpy(receives.front().bytes.data(), message.data(), message.size());
          ended_.push_back({receives.front().notify, message.size()});
          receives.pop_front();
          messages.pop_front();
        }
      }
    }

    void add() {
      const std::lock_guard lock(network_.mutex_);
      std::erase_if(open_sums_, [&](const OpenSum& open) {
        const auto& addends = network_.sums_[open.number];
        if (static_cast<int>(addends.size()) < network_.ranks_) return false;
        for (std::size_t i = 0; i < addends.at(0).size(); ++i) {
          float sum = 0.0F;
          for (const auto& [rank, values] : addends) sum += values[i];
          open.to[i] = sum;
        }
        ended_.push_back({open.notify, 0});
        return true;
      });
    }

    MemoryNetwork& network_;
    const int rank_;
    std::map<Key, std::deque<Receive>> posted_;
    std::deque<Ended> ended_;
    std::size_t sums_begun_ = 0;
    std::vector<OpenSum> open_sums_;
  };

  static constexpr double kForever = 1e6;

  const int ranks_;
  std::barrier<> all_open_;
  const std::string host_ = "here";
  std::mutex mutex_;
  std::map<Key, std::deque<std::vector<std::byte>>> messages_;
  std::vector<std::map<int, std::vector<float>>> sums_;  // by number, then by rank
  std::set<int> cut_off_;
};

}  // namespace arbalest::tests
