// Simulates a network of ranks in one thread, with virtual time and seeded delays. Messages of one pair of ranks keep
// their order; messages of different pairs do not. Large messages are fetched from the sender's memory when they meet
// their receive, as MPI does it, so a buffer that is reused too early shows. A receive into memory that is being sent,
// or the other way round, is an error.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/process/operations/transport.h"

namespace arbalest::tests {

struct NetworkOptions {
  double least_delay_seconds = 10e-6;
  double most_delay_seconds = 2e-3;
  std::size_t eager_bytes = 64;   // a longer message is fetched by its receiver
  bool has_eager_signals = true;  // whatever their length
  // Whether the other ranks get errors of their connections to a rank that dies, as MPICH gives them.
  bool reports_dead = false;
  // Whether poll() reports the newest messages that have ended first. MPI may report them in any order.
  bool reports_newest_first = false;
};

class SimulatedNetwork {
 public:
  SimulatedNetwork(int ranks, std::uint64_t seed, NetworkOptions options = {});
  ~SimulatedNetwork();

  engine::process::Transport& transport(int rank);
  double now() const noexcept { return now_; }

  // Kills the rank: from now on it sends and receives nothing.
  void kill(int rank);
  bool is_alive(int rank) const { return alive_[static_cast<std::size_t>(rank)]; }
  // Kills the rank when it has got its n-th message that is no signal.
  void kill_after_messages(int rank, int n) { kill_after_[rank] = n; }
  // Loses messages between two ranks of different groups from now on.
  void partition(const std::set<int>& group) { cut_off_ = group; }
  // Loses messages between these two ranks from now on.
  void cut(int a, int b) { cuts_.insert({std::min(a, b), std::max(a, b)}); }

  // Calls `action` at a time.
  void at(double time, std::function<void()> action);
  // Goes on to the next action. Returns false if there is none before `until`.
  bool step(double until);
  // Returns whether poll() of the rank has something to do.
  bool has_ended_messages(int rank) const;
  // Calls `action` when a message has ended for a rank.
  void on_ended(std::function<void(int rank)> action) { on_ended_ = std::move(action); }

  // Returns a hash of everything that has happened.
  std::uint64_t history() const noexcept { return history_; }

 private:
  friend class SimulatedTransport;

  struct Message {
    std::span<const std::byte> bytes;
    std::vector<std::byte> copy;  // of an eager message
    bool is_eager = false;
    engine::process::Notify sender;
  };
  struct Receive {
    std::span<std::byte> bytes;
    engine::process::Notify notify;
  };
  struct Key {
    int from, to, channel;
    auto operator<=>(const Key&) const = default;
  };
  struct Ended {
    engine::process::Notify notify;
    std::size_t bytes;
    int channel;
    std::span<const std::byte> buffer;  // of this rank
    bool is_receive;
  };
  // This memory belongs to the network until the rank is told that the message has ended.
  struct Use {
    std::span<const std::byte> buffer;
    bool is_receive;
  };
  // This is the n-th sum that each rank has started.
  struct Sum {
    std::map<int, std::span<const float>> from;  // by rank
    std::map<int, std::pair<float*, engine::process::Notify>> to;
  };
  struct Action {
    double time;
    std::uint64_t number;
    std::function<void()> run;
    bool operator<(const Action& other) const { return std::pair(time, number) > std::pair(other.time, other.number); }
  };

  void send(int from, int to, int channel, std::span<const std::byte> bytes, engine::process::Notify notify);
  void receive(int to, int from, int channel, std::span<std::byte> bytes, engine::process::Notify notify);
  void add(int rank, std::span<const float> from, float* to, engine::process::Notify notify);
  bool is_whole() const;  // all ranks live and reach each other
  bool poll(int rank);
  void report_dead(int rank);
  void match(const Key& key);
  void lend(int rank, const Use& use);
  void end(int rank, const Ended& ended);
  double delay();
  bool is_cut(int a, int b) const {
    return cut_off_.contains(a) != cut_off_.contains(b) || cuts_.contains({std::min(a, b), std::max(a, b)});
  }
  void note(std::uint64_t value) noexcept { history_ = (history_ ^ value) * 0x9E3779B97F4A7C15U + (history_ >> 29); }

  const NetworkOptions options_;
  std::mt19937_64 generator_;
  double now_ = 0.0;
  std::uint64_t actions_done_ = 0;
  std::uint64_t history_ = 1;
  std::priority_queue<Action> actions_;
  std::vector<std::unique_ptr<engine::process::Transport>> transports_;
  std::vector<bool> alive_;
  std::map<int, int> kill_after_;
  std::set<int> cut_off_;
  std::set<std::pair<int, int>> cuts_;
  std::map<std::pair<int, int>, double> last_arrival_;
  std::map<Key, std::deque<Message>> arrived_;
  std::map<Key, std::deque<Receive>> posted_;
  std::vector<std::deque<Ended>> ended_;
  std::vector<std::vector<Use>> lent_;       // by rank
  std::vector<std::deque<int>> dead_peers_;  // by rank: peers that its next polls report
  std::vector<std::size_t> sums_begun_;      // by rank
  std::map<std::size_t, Sum> sums_;
  std::function<void(int)> on_ended_;
};

}  // namespace arbalest::tests
