// The protocol of asynchronous SGD over several processes, in a simulated cluster with random delays: the bound of
// staleness, read-your-writes, and points at which all processes are drained.
#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "engine/process/operations/mailbox_messages.h"
#include "sma/shard_protocol.h"
#include "tests/process/simulated_network.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"

namespace {

using namespace arbalest;
using engine::process::MailboxReceipt;
using engine::process::MailboxSend;
using sma::MessageHeader;
using sma::MessageKind;
using sma::ShardMessage;

struct Plan {
  int processes = 2;
  std::vector<int> learners = {};        // by process
  std::optional<int> bound = {};         // of staleness
  int iterations = 4;                    // of a phase
  int phases = 2;                        // each ends drained
  std::vector<double> seconds = {};      // by learner: the mean time of a gradient
  std::optional<std::size_t> held = {};  // learner whose first gradient never completes
  std::size_t all = 0;
};

// One process. Its shard's "weights" are the numbers of pushes that it has applied, by learner.
class Node final : private sma::ShardWork {
 public:
  Node(tests::SimulatedNetwork& network, int rank, const Plan& plan, std::uint64_t seed)
      : network_(network),
        transport_(network.transport(rank)),
        rank_(rank),
        plan_(plan),
        random_(seed * 64 + static_cast<std::uint64_t>(rank)),
        applied_(plan.all, 0.0F),
        pulled_at_(plan.all, 0),
        protocol_(rank, plan.processes, *this),
        receipt_([this](int from, std::string bytes) { protocol_.received(from, ShardMessage(std::move(bytes))); }) {
    std::size_t first = 0;
    for (int before = 0; before < rank; ++before) first += static_cast<std::size_t>(plan.learners[at(before)]);
    first_ = first;
    own_ = plan.learners[at(rank)];
    lags_.resize(static_cast<std::size_t>(own_));
    protocol_.restart(first, static_cast<std::size_t>(own_), plan.all, plan.bound);
    receipt_.start(transport_, engine::process::kMailboxChannel);
  }

  // Does all that can be done now.
  void step() {
    while (transport_.poll()) {
    }
    while (protocol_.granted() == 0 && phase_ < plan_.phases && iterations_ < plan_.iterations) {
      if (!protocol_.is_open()) protocol_.open();
      ++iterations_;
      protocol_.grant(own_);
    }
    if (protocol_.is_open() && iterations_ == plan_.iterations && protocol_.granted() == 0) protocol_.drain();
    if (iterations_ == plan_.iterations && !protocol_.is_open()) end_phase();
  }

  bool has_ended() const { return phase_ == plan_.phases; }
  std::int64_t largest_lag() const { return largest_lag_; }
  std::int64_t most_stale() const { return most_stale_; }
  std::vector<int> awaited() const { return protocol_.awaited(); }
  bool has(std::size_t learner) const { return learner >= first_ && learner < first_ + at(own_); }
  int completed(std::size_t learner) const { return static_cast<int>(protocol_.clocks().clock(learner)); }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  // A drained shard has exactly the pushes of the phases so far.
  void end_phase() {
    ++phase_;
    iterations_ = 0;
    std::size_t first = 0;
    for (const int learners : plan_.learners) {
      float pushes = 0.0F;
      for (int j = 0; j < learners; ++j) pushes += applied_[first++];
      REQUIRE(pushes == static_cast<float>(phase_ * plan_.iterations * learners));
    }
    if (has_ended()) {
      for (int to = 0; to < plan_.processes; ++to) {
        if (to != rank_) post(to, {});
      }
    } else {
      network_.at(network_.now() + pause(1e-3), [this] { step(); });
    }
  }

  double pause(double mean) { return mean * 2.0 * static_cast<double>(random_() >> 11) * 0x1p-53; }

  void post(int to, std::string bytes) {
    MailboxSend& message = sent_.emplace_back(std::move(bytes), to);
    message.start(transport_, engine::process::kMailboxChannel);
  }

  bool has_batches() override { return true; }
  void start(std::size_t learner) override { lags_[learner - first_].clear(); }
  void read_weights(std::size_t learner) override {
    pulled_at_[learner] = pushes_;
    ShardMessage weights({.kind = MessageKind::kWeights, .learner = static_cast<std::uint32_t>(learner)}, plan_.all);
    std::ranges::copy(applied_, weights.elements().begin());
    auto kept = std::make_shared<ShardMessage>(std::move(weights));
    // A stream reads in order, so one answer never overtakes another.
    read_until_ = std::max(read_until_, network_.now() + pause(1e-4));
    network_.at(read_until_, [this, kept] {
      protocol_.weights_read(std::move(*kept));
      step();
    });
  }
  void keep_weights(int, const ShardMessage& weights) override {
    const std::size_t learner = weights.header().learner;
    const auto numbers = weights.elements();
    const auto own = static_cast<std::int64_t>(numbers[learner]);
    REQUIRE(own == protocol_.clocks().clock(learner));  // it reads all that it has written
    lags_[learner - first_].push_back(own - static_cast<std::int64_t>(std::ranges::min(numbers)));
  }
  void compute(std::size_t learner) override {
    const auto& lags = lags_[learner - first_];
    REQUIRE(lags.size() == at(plan_.processes));
    largest_lag_ = std::max(largest_lag_, std::ranges::max(lags));
    if (plan_.held == learner) return;
    network_.at(network_.now() + pause(plan_.seconds[learner]), [this, learner] {
      protocol_.computed(learner);
      step();
    });
  }
  ShardMessage gradient(std::size_t learner, int) override {
    return ShardMessage({.kind = MessageKind::kPush, .learner = static_cast<std::uint32_t>(learner)}, 8);
  }
  void apply(ShardMessage push, std::int64_t staleness) override {
    const std::size_t learner = push.header().learner;
    REQUIRE(staleness == pushes_ - pulled_at_[learner]);
    most_stale_ = std::max(most_stale_, staleness);
    ++applied_[learner];
    ++pushes_;
  }
  void send(int to, ShardMessage message) override { post(to, message.take_bytes()); }

  tests::SimulatedNetwork& network_;
  engine::process::Transport& transport_;
  const int rank_;
  const Plan& plan_;
  std::mt19937_64 random_;
  std::vector<float> applied_;
  std::vector<std::int64_t> pulled_at_;
  std::vector<std::vector<std::int64_t>> lags_;  // by learner: clocks that a shard's weights are behind its own
  sma::ShardProtocol protocol_;
  MailboxReceipt receipt_;
  std::deque<MailboxSend> sent_;
  std::size_t first_ = 0;
  int own_ = 0;
  int iterations_ = 0;
  int phase_ = 0;
  std::int64_t pushes_ = 0;
  std::int64_t largest_lag_ = 0;
  std::int64_t most_stale_ = 0;
  double read_until_ = 0.0;
};

class Cluster {
 public:
  Cluster(const Plan& plan, std::uint64_t seed)
      : plan_(plan), network_(plan.processes, seed, {.eager_bytes = seed % 2 == 0 ? 64U : 0U}) {
    for (int rank = 0; rank < plan.processes; ++rank) {
      nodes_.push_back(std::make_unique<Node>(network_, rank, plan_, seed));
    }
    network_.on_ended([this](int rank) {
      network_.at(network_.now(), [this, rank] { nodes_[static_cast<std::size_t>(rank)]->step(); });
    });
  }

  void run() {
    for (const auto& node : nodes_) node->step();
    while (network_.step(1e6)) {
    }
  }
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }

 private:
  const Plan plan_;
  tests::SimulatedNetwork network_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

Plan random_plan(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Plan plan{.processes = 2 + static_cast<int>(random() % 4)};
  for (int rank = 0; rank < plan.processes; ++rank) plan.learners.push_back(1 + static_cast<int>(random() % 3));
  if (random() % 4 != 0) plan.bound = static_cast<int>(random() % 4);
  plan.iterations = 1 + static_cast<int>(random() % 5);
  plan.phases = 1 + static_cast<int>(random() % 3);
  for (const int learners : plan.learners) plan.all += static_cast<std::size_t>(learners);
  // Some learners are much slower than the others.
  for (std::size_t j = 0; j < plan.all; ++j) plan.seconds.push_back(1e-3 * static_cast<double>(1 + random() % 40));
  return plan;
}

}  // namespace

TEST_CASE("shards: no learner misses more than the bound, and each reads what it has written, in random schedules",
          "[async]") {
  const std::uint64_t schedules = tests::kSanitized ? 500 : 10'000;
  std::int64_t largest_without_bound = 0;
  std::vector<std::int64_t> largest(4, -1);
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    CAPTURE(seed);
    const Plan plan = random_plan(seed);
    Cluster cluster(plan, seed);
    cluster.run();
    for (const auto& node : cluster.nodes()) {
      REQUIRE(node->has_ended());  // no deadlock
      if (!plan.bound) {
        largest_without_bound = std::max(largest_without_bound, node->largest_lag());
        continue;
      }
      REQUIRE(node->largest_lag() <= *plan.bound);
      REQUIRE(node->most_stale() <= static_cast<std::int64_t>(plan.all - 1) * (2 * *plan.bound + 1));
      std::int64_t& most = largest[static_cast<std::size_t>(*plan.bound)];
      most = std::max(most, node->largest_lag());
    }
  }
  CHECK(largest == std::vector<std::int64_t>{0, 1, 2, 3});  // bounds are reached
  CHECK(largest_without_bound > 3);
}

TEST_CASE("shards: while one learner is held, all others complete exactly the bound and one clock more", "[async]") {
  for (const int bound : {0, 1, 3}) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      CAPTURE(bound, seed);
      Plan plan = random_plan(seed);
      plan.bound = bound;
      plan.iterations = 100;
      plan.held = seed % plan.all;
      Cluster cluster(plan, seed);
      cluster.run();
      for (const auto& node : cluster.nodes()) {
        CHECK_FALSE(node->has_ended());
        // The process of the held learner waits for nobody, and all others wait for it, too.
        CHECK(node->awaited().size() == (node->has(*plan.held) ? 0U : static_cast<std::size_t>(plan.processes - 1)));
        for (std::size_t learner = 0; learner < plan.all; ++learner) {
          CHECK(node->completed(learner) == (learner == plan.held ? 0 : bound + 1));
        }
      }
    }
  }
}
