// Tests that a rank whose machine has another byte order is named by the first message that comes from it.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/process/operations/bytes_transfer.h"
#include "engine/process/watchdog.h"
#include "tests/process/simulated_network.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::process::Notify;
using engine::process::Transport;

// Sends every number of four bytes as a machine of the other byte order would.
class SwappingTransport final : public Transport {
 public:
  explicit SwappingTransport(Transport& transport) : transport_(transport) {}

  int rank() const noexcept override { return transport_.rank(); }
  int size() const noexcept override { return transport_.size(); }
  int local_rank() const noexcept override { return transport_.local_rank(); }
  int local_size() const noexcept override { return transport_.local_size(); }
  const std::string& host(int rank) const override { return transport_.host(rank); }
  void send(int peer, int channel, std::span<const std::byte> bytes, Notify notify) override {
    std::vector<std::byte>& swapped = sent_.emplace_back(bytes.begin(), bytes.end());
    for (auto number = swapped.begin(); swapped.end() - number >= 4; number += 4) std::reverse(number, number + 4);
    transport_.send(peer, channel, swapped, notify);
  }
  void receive(int peer, int channel, std::span<std::byte> bytes, Notify notify) override {
    transport_.receive(peer, channel, bytes, notify);
  }
  void all_reduce_sum(std::span<const float> from, float* to, Notify notify) override {
    transport_.all_reduce_sum(from, to, notify);
  }
  bool poll() override { return transport_.poll(); }
  void close() override { transport_.close(); }
  void abort(int exit_code) noexcept override { transport_.abort(exit_code); }

 private:
  Transport& transport_;
  std::deque<std::vector<std::byte>> sent_;  // until the end
};

// Lets rank 0 receive all that is under way. Returns its error.
std::optional<std::string> error_of_rank_0(SimulatedNetwork& network) {
  try {
    while (network.step(10.0)) network.transport(0).poll();
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kPeer);
    return error.what();
  }
  return std::nullopt;
}

constexpr const char* kMailbox = "rank 1 on host node-1 runs another version of the program, or has another byte order";

}  // namespace

TEST_CASE("byte order: a heartbeat of another byte order names its rank") {
  for (const bool is_swapped : {false, true}) {
    SimulatedNetwork network(2, 1);
    SwappingTransport swapping(network.transport(1));
    Transport& of_rank_1 = is_swapped ? swapping : network.transport(1);
    engine::process::Watchdog own(network.transport(0), {}, 0.0);
    engine::process::Watchdog other(of_rank_1, {}, 0.0);
    other.tick(0.1);
    const std::optional<std::string> error = error_of_rank_0(network);
    REQUIRE(error.has_value() == is_swapped);
    if (is_swapped) CHECK_THAT(*error, ContainsSubstring(kMailbox));
  }
}

TEST_CASE("byte order: bytes of another byte order name their rank") {
  for (const bool is_swapped : {false, true}) {
    SimulatedNetwork network(2, 1);
    SwappingTransport swapping(network.transport(1));
    Transport& of_rank_1 = is_swapped ? swapping : network.transport(1);
    constexpr int kChannel = 100;
    constexpr auto kKind = engine::process::TransferKind::kBroadcast;
    engine::process::IncomingBytes incoming;
    incoming.start(network.transport(0), 1, kChannel, kKind, [] {});
    engine::process::OutgoingBytes outgoing;
    outgoing.start(of_rank_1, 0, kChannel, kKind, "the job");
    const std::optional<std::string> error = error_of_rank_0(network);
    REQUIRE(error.has_value() == is_swapped);
    CHECK(incoming.done() != is_swapped);
    if (is_swapped) CHECK_THAT(*error, ContainsSubstring(kMailbox));
  }
}

}  // namespace arbalest::tests
