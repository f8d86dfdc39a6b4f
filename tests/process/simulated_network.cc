#include "tests/process/simulated_network.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "engine/base/error.h"
#include "engine/process/operations/operation.h"
#include "tests/process/vectors.h"

namespace arbalest::tests {

using engine::process::Notify;
using engine::process::Transport;

class SimulatedTransport final : public Transport {
 public:
  SimulatedTransport(SimulatedNetwork& network, int rank, int size) : network_(network), rank_(rank) {
    for (int i = 0; i < size; ++i) hosts_.push_back("node-" + std::to_string(i));
  }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return static_cast<int>(hosts_.size()); }
  int local_rank() const noexcept override { return 0; }
  int local_size() const noexcept override { return 1; }
  const std::string& host(int rank) const override { return hosts_.at(static_cast<std::size_t>(rank)); }
  void send(int peer, int channel, std::span<const std::byte> bytes, Notify notify) override {
    network_.send(rank_, peer, channel, bytes, notify);
  }
  void receive(int peer, int channel, std::span<std::byte> bytes, Notify notify) override {
    network_.receive(rank_, peer, channel, bytes, notify);
  }
  void all_reduce_sum(std::span<const float> from, float* to, Notify notify) override {
    network_.add(rank_, from, to, notify);
  }
  bool poll() override { return network_.poll(rank_); }
  void close() override {}
  void abort(int) noexcept override {}

 private:
  SimulatedNetwork& network_;
  const int rank_;
  std::vector<std::string> hosts_;
};

SimulatedNetwork::SimulatedNetwork(int ranks, std::uint64_t seed, NetworkOptions options)
    : options_(options),
      generator_(seed),
      alive_(static_cast<std::size_t>(ranks), true),
      ended_(static_cast<std::size_t>(ranks)),
      lent_(static_cast<std::size_t>(ranks)),
      dead_peers_(static_cast<std::size_t>(ranks)),
      sums_begun_(static_cast<std::size_t>(ranks)) {
  for (int rank = 0; rank < ranks; ++rank) {
    transports_.push_back(std::make_unique<SimulatedTransport>(*this, rank, ranks));
  }
}

SimulatedNetwork::~SimulatedNetwork() = default;

Transport& SimulatedNetwork::transport(int rank) { return *transports_[static_cast<std::size_t>(rank)]; }

void SimulatedNetwork::kill(int rank) {
  if (!is_alive(rank)) return;
  alive_[static_cast<std::size_t>(rank)] = false;
  ended_[static_cast<std::size_t>(rank)].clear();
  if (options_.reports_dead) report_dead(rank);
}

// The other ranks first get the messages that were under way.
void SimulatedNetwork::report_dead(int rank) {
  for (int other = 0; other < static_cast<int>(alive_.size()); ++other) {
    if (other == rank || is_cut(rank, other)) continue;
    at(std::max(last_arrival_[{rank, other}], now_ + delay()), [this, rank, other] {
      if (!is_alive(other)) return;
      dead_peers_[static_cast<std::size_t>(other)].push_back(rank);
      if (on_ended_) on_ended_(other);
    });
  }
}

void SimulatedNetwork::at(double time, std::function<void()> action) {
  actions_.push({time, actions_done_ + actions_.size(), std::move(action)});
}

bool SimulatedNetwork::step(double until) {
  if (actions_.empty() || actions_.top().time > until) return false;
  const Action action = actions_.top();
  actions_.pop();
  ++actions_done_;
  now_ = action.time;
  note(std::bit_cast<std::uint64_t>(now_));
  action.run();
  return true;
}

bool SimulatedNetwork::has_ended_messages(int rank) const {
  const auto i = static_cast<std::size_t>(rank);
  return !ended_[i].empty() || !dead_peers_[i].empty();
}

double SimulatedNetwork::delay() {
  const double uniform = static_cast<double>(generator_() >> 11) * 0x1p-53;
  return options_.least_delay_seconds +
         uniform * uniform * (options_.most_delay_seconds - options_.least_delay_seconds);
}

void SimulatedNetwork::send(int from, int to, int channel, std::span<const std::byte> bytes, Notify notify) {
  if (!is_alive(from)) return;
  note(static_cast<std::uint64_t>(from) << 48 | static_cast<std::uint64_t>(to) << 32 | bytes.size());
  lend(from, {bytes, false});
  const bool is_signal = channel == engine::process::kSignalChannel;
  const bool is_eager = bytes.size() <= options_.eager_bytes || (is_signal && options_.has_eager_signals);
  Message message{.bytes = bytes, .copy = {}, .is_eager = is_eager, .sender = notify};
  if (message.is_eager) {
    message.copy.assign(bytes.begin(), bytes.end());
    end(from, {notify, bytes.size(), channel, bytes, false});
  }
  double& last = last_arrival_[{from, to}];
  last = std::max(last, now_ + delay());
  at(last, [this, key = Key{from, to, channel}, message = std::move(message)]() mutable {
    if (is_cut(key.from, key.to) || !is_alive(key.to)) return;
    arrived_[key].push_back(std::move(message));
    match(key);
  });
}

void SimulatedNetwork::receive(int to, int from, int channel, std::span<std::byte> bytes, Notify notify) {
  if (!is_alive(to)) return;
  lend(to, {bytes, true});
  std::ranges::fill(bytes, std::byte{0xCD});  // MPI may write from now on
  const Key key{from, to, channel};
  posted_[key].push_back({bytes, notify});
  match(key);
}

void SimulatedNetwork::lend(int rank, const Use& use) {
  std::vector<Use>& lent = lent_[static_cast<std::size_t>(rank)];
  for (const Use& other : lent) {
    const bool overlap = use.buffer.data() < other.buffer.data() + other.buffer.size() &&
                         other.buffer.data() < use.buffer.data() + use.buffer.size();
    if (overlap && (use.is_receive || other.is_receive)) {
      throw std::logic_error("memory of a message is used by another one");
    }
  }
  lent.push_back(use);
}

void SimulatedNetwork::match(const Key& key) {
  std::deque<Message>& messages = arrived_[key];
  std::deque<Receive>& receives = posted_[key];
  while (!messages.empty() && !receives.empty()) {
    const Message message = std::move(messages.front());
    const Receive receive = receives.front();
    messages.pop_front();
    receives.pop_front();
    if (message.bytes.size() > receive.bytes.size()) throw std::runtime_error("a message is longer than its receive");
    const Ended arrival{receive.notify, message.bytes.size(), key.channel, receive.bytes, true};
    if (message.is_eager) {
      std::ranges::copy(message.copy, receive.bytes.begin());
      end(key.to, arrival);
      continue;
    }
    // The receiver fetches the bytes, which takes some time. Either side may die before.
    at(now_ + delay(), [this, key, message, receive, arrival] {
      if (is_cut(key.from, key.to) || !is_alive(key.from) || !is_alive(key.to)) return;
      std::ranges::copy(message.bytes, receive.bytes.begin());
      end(key.to, arrival);
      end(key.from, {message.sender, message.bytes.size(), key.channel, message.bytes, false});
    });
  }
}

void SimulatedNetwork::add(int rank, std::span<const float> from, float* to, Notify notify) {
  if (!is_alive(rank)) return;
  Sum& sum = sums_[sums_begun_[static_cast<std::size_t>(rank)]++];
  sum.from[rank] = from;
  sum.to[rank] = {to, notify};
  if (sum.from.size() < alive_.size() || !is_whole()) return;
  std::vector<float> result;
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::vector<float> addends;
    for (const auto& [other, values] : sum.from) {
      if (values.size() != from.size()) throw std::logic_error("ranks start their sums in different orders");
      addends.push_back(values[i]);
    }
    result.push_back(sum_by_tree(addends));
  }
  for (const auto& [other, target] : sum.to) {
    at(now_ + delay(), [this, other = other, target = target, result] {
      if (!is_alive(other)) return;
      std::ranges::copy(result, target.first);
      end(other, {.notify = target.second, .bytes = 0, .channel = 1, .buffer = {}, .is_receive = true});
    });
  }
}

bool SimulatedNetwork::is_whole() const {
  for (int a = 0; a < static_cast<int>(alive_.size()); ++a) {
    if (!is_alive(a)) return false;
    for (int b = 0; b < a; ++b) {
      if (is_cut(a, b)) return false;
    }
  }
  return true;
}

void SimulatedNetwork::end(int rank, const Ended& ended) {
  ended_[static_cast<std::size_t>(rank)].push_back(ended);
  if (on_ended_) on_ended_(rank);
}

bool SimulatedNetwork::poll(int rank) {
  std::deque<Ended>& queue = ended_[static_cast<std::size_t>(rank)];
  std::size_t count = queue.size();  // what ends meanwhile waits for the next call
  const bool any = count > 0;
  if (options_.reports_newest_first) std::ranges::reverse(queue);
  for (; count > 0 && !queue.empty(); --count) {
    const Ended ended = queue.front();
    queue.pop_front();
    const auto kill_after = kill_after_.find(rank);
    const bool counts =
        ended.is_receive && ended.channel != engine::process::kSignalChannel && kill_after != kill_after_.end();
    std::vector<Use>& lent = lent_[static_cast<std::size_t>(rank)];
    const auto use = std::ranges::find_if(lent, [&](const Use& other) {
      return other.is_receive == ended.is_receive && other.buffer.data() == ended.buffer.data() &&
             other.buffer.size() == ended.buffer.size();
    });
    if (use != lent.end()) {
      lent.erase(use);
    } else if (!ended.buffer.empty()) {
      throw std::logic_error("a message has ended that was never begun");
    }
    ended.notify.listener->on_message(ended.notify.token, ended.bytes);
    if (counts && --kill_after->second == 0) kill(rank);
  }
  std::deque<int>& dead = dead_peers_[static_cast<std::size_t>(rank)];
  if (!dead.empty()) {
    const int peer = dead.front();
    dead.pop_front();
    throw engine::process::ConnectionError(peer, "the simulated connection is broken");
  }
  return any;
}

}  // namespace arbalest::tests
