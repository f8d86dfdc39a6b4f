// The textbook algorithms that all_reduce_bench compares with the product's all-reduce, and the predictions beside
// them.
#include "bench/all_reduce/algorithms.h"

#include <algorithm>
#include <numeric>

#include "bench/all_reduce/cost_model.h"
#include "tests/process/ranks.h"
#include "tests/process/simulated_cluster.h"
#include "tests/process/vectors.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using bench::Algorithm;
using bench::Exchange;
using bench::ExchangeSum;
using bench::LinkCosts;
using bench::predicted_seconds;
using engine::process::Operation;

struct Case {
  const char* name;
  Algorithm algorithm;
  std::vector<Exchange> (*exchanges)(int rank, int ranks, std::size_t elements);
};

constexpr Case kCases[] = {{"ring", Algorithm::kRing, bench::ring},
                           {"halving-doubling", Algorithm::kHalvingDoubling, bench::halving_doubling},
                           {"binomial tree", Algorithm::kBinomialTree, bench::binomial_tree}};

using Vectors = std::vector<std::vector<float>>;

Vectors sums(const Case& algorithm, const Vectors& addends, std::uint64_t seed) {
  Vectors values = addends;
  const auto ranks = static_cast<int>(values.size());
  SimulatedCluster cluster(ranks, seed,
                           [&](int rank, int step) -> std::unique_ptr<Operation> {
                             if (step > 0) return nullptr;
                             std::vector<float>& own = values[static_cast<std::size_t>(rank)];
                             return std::make_unique<ExchangeSum>(own, algorithm.exchanges(rank, ranks, own.size()));
                           },
                           {});
  REQUIRE(cluster.run(60.0));
  for (int rank = 0; rank < ranks; ++rank) {
    INFO(cluster.failure(rank).value_or("no failure"));
    REQUIRE(cluster.is_closed(rank));
  }
  return values;
}

// Whole numbers, whose sum is exact in any order.
Vectors whole_numbers(int ranks, std::size_t elements) {
  Vectors vectors;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<float>& vector = vectors.emplace_back(elements);
    for (std::size_t i = 0; i < elements; ++i) {
      vector[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(rank) * 1009) % 2003);
    }
  }
  return vectors;
}

std::vector<float> sum_of(const Vectors& vectors) {
  std::vector<float> sum(vectors.front().size());
  for (const std::vector<float>& vector : vectors) {
    std::ranges::transform(sum, vector, sum.begin(), std::plus<>());
  }
  return sum;
}

// The seconds that the exchanges of the busiest rank take.
double seconds_of(const Case& algorithm, const LinkCosts& link, double gamma, int ranks, std::size_t elements) {
  double most = 0.0;
  for (int rank = 0; rank < ranks; ++rank) {
    double seconds = 0.0;
    for (const Exchange& exchange : algorithm.exchanges(rank, ranks, elements)) {
      const auto bytes = static_cast<double>(sizeof(float) * std::max(exchange.sent.size, exchange.received.size));
      const auto added = exchange.adds ? static_cast<double>(sizeof(float) * exchange.received.size) : 0.0;
      seconds += link.latency_seconds + link.seconds_per_byte * bytes + gamma * added;
    }
    most = std::max(most, seconds);
  }
  return most;
}

}  // namespace

TEST_CASE("all-reduce algorithms: every rank gets the sum, for 2 to 8 ranks and any length") {
  for (const Case& algorithm : kCases) {
    for (int ranks = 2; ranks <= 8; ++ranks) {
      for (const std::size_t elements : {0U, 1U, 3U, 16U, 17U, 100U, 127U, 1000U, 4099U}) {
        CAPTURE(algorithm.name, ranks, elements);
        const Vectors addends = whole_numbers(ranks, elements);
        const std::vector<float> expected = sum_of(addends);
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          for (const std::vector<float>& values : sums(algorithm, addends, seed)) CHECK(values == expected);
        }
      }
    }
  }
}

TEST_CASE("all-reduce algorithms: all ranks have the same bits, in every run") {
  for (const Case& algorithm : kCases) {
    for (const int ranks : {3, 4, 7}) {
      CAPTURE(algorithm.name, ranks);
      const Addends addends(ranks, 1000, 5);
      const std::vector<float> first = sums(algorithm, addends.of_rank, 0).front();
      for (std::uint64_t seed = 1; seed < 4; ++seed) {
        for (const std::vector<float>& values : sums(algorithm, addends.of_rank, seed)) CHECK(values == first);
      }
      for (std::size_t i = 0; i < first.size(); ++i) CHECK(first[i] == Approx(addends.sum[i]).margin(1e-5));
    }
  }
}

TEST_CASE("all-reduce algorithms: the ring of three ranks, slice by slice") {
  // 48 floats are three slices of 16. Rank 1 adds slices 0 and 2 on their way, and has the sum of slice 2 then.
  const std::vector<Exchange> expected = {{2, {16, 16}, 0, {0, 16}, true},
                                          {2, {0, 16}, 0, {32, 16}, true},
                                          {2, {32, 16}, 0, {16, 16}, false},
                                          {2, {16, 16}, 0, {0, 16}, false}};
  CHECK(bench::ring(1, 3, 48) == expected);
}

TEST_CASE("all-reduce algorithms: five ranks fold one pair before four of them halve") {
  const std::vector<Exchange> folded = {{.to = 1, .sent = {0, 64}}, {.from = 1, .received = {0, 64}}};
  CHECK(bench::halving_doubling(0, 5, 64) == folded);
  const std::vector<Exchange> partner = {{.from = 0, .received = {0, 64}, .adds = true},
                                         {3, {32, 32}, 3, {0, 32}, true},
                                         {2, {16, 16}, 2, {0, 16}, true},
                                         {2, {0, 16}, 2, {16, 16}, false},
                                         {3, {0, 32}, 3, {32, 32}, false},
                                         {.to = 0, .sent = {0, 64}}};
  CHECK(bench::halving_doubling(1, 5, 64) == partner);
}

TEST_CASE("all-reduce algorithms: a sum can be started again, and says for whom it waits") {
  constexpr int kRanks = 3;
  const Vectors addends = whole_numbers(kRanks, 100);
  Vectors values = addends;
  std::vector<std::unique_ptr<ExchangeSum>> operations;
  for (int rank = 0; rank < kRanks; ++rank) {
    operations.push_back(
        std::make_unique<ExchangeSum>(values[static_cast<std::size_t>(rank)], bench::ring(rank, kRanks, 100)));
    CHECK(operations.back()->done());
    CHECK_FALSE(operations.back()->waits_for((rank + 1) % kRanks));
  }
  SimulatedNetwork network(kRanks, 3);
  for (int round = 0; round < 3; ++round) {
    values = addends;
    for (int rank = 0; rank < kRanks; ++rank) {
      operations[static_cast<std::size_t>(rank)]->start(network.transport(rank), 1 + 2 * round);
    }
    CHECK(operations[0]->waits_for(1));  // until the first slice has left
    CHECK(operations[0]->waits_for(2));
    CHECK_FALSE(operations[0]->waits_for(0));
    const auto all_done = [&] { return std::ranges::all_of(operations, [](const auto& of) { return of->done(); }); };
    while (!all_done()) {
      for (int rank = 0; rank < kRanks; ++rank) network.transport(rank).poll();
      if (!network.step(1000.0)) break;
    }
    CHECK(all_done());
    for (const std::vector<float>& of_rank : values) CHECK(of_rank == sum_of(addends));
  }
}

TEST_CASE("all-reduce algorithms: ranks with vectors of different lengths are refused") {
  SimulatedCluster cluster(2, 1,
                           [values = Vectors{std::vector<float>(40), std::vector<float>(30)}](
                               int rank, int step) mutable -> std::unique_ptr<Operation> {
                             if (step > 0) return nullptr;
                             std::vector<float>& own = values[static_cast<std::size_t>(rank)];
                             return std::make_unique<ExchangeSum>(own, bench::binomial_tree(rank, 2, own.size()));
                           },
                           {});
  REQUIRE(cluster.run(60.0));
  CHECK_THAT(cluster.failure(0).value_or(""), ContainsSubstring("a part from rank 1 has 120 bytes and not 160"));
}

TEST_CASE("all-reduce algorithms: they run on the communication thread of a world, like ours") {
  for (const Case& algorithm : kCases) {
    for (const int ranks : {2, 3}) {
      const Vectors addends = whole_numbers(ranks, 1000);
      const std::vector<float> expected = sum_of(addends);
      on_each_rank(ranks, [&](engine::process::World& world) {
        std::vector<float> values(1000);
        const auto sum = world.prepare_all_reduce(
            std::make_unique<ExchangeSum>(values, algorithm.exchanges(world.rank(), ranks, values.size())));
        for (int round = 0; round < 3; ++round) {
          values = addends[static_cast<std::size_t>(world.rank())];
          sum->start(world.next_turn());
          sum->wait();
          expect(values == expected, algorithm.name);
        }
      });
    }
  }
}

TEST_CASE("all-reduce algorithms: a ping-pong brings every vector back, also to a rank without a partner") {
  const Case there_and_back{"ping-pong", Algorithm::kRing, bench::ping_pong};
  for (const int ranks : {2, 3, 4}) {
    const Vectors before = whole_numbers(ranks, 50);
    const Vectors after = sums(there_and_back, before, 1);
    for (int rank = 0; rank < ranks; ++rank) {  // odd ranks have the vector of their partner
      const int sender = rank - rank % 2;
      CHECK(after[static_cast<std::size_t>(rank)] == before[static_cast<std::size_t>(sender)]);
    }
  }
}

TEST_CASE("all-reduce costs: the formulas are those of the exchanges") {
  constexpr std::size_t kElements = 16 * 840;  // slices of 2 to 8 ranks are equally long
  const LinkCosts link{.latency_seconds = 3e-6, .seconds_per_byte = 1e-9};
  for (const Case& algorithm : kCases) {
    for (int ranks = 2; ranks <= 8; ++ranks) {
      CAPTURE(algorithm.name, ranks);
      CHECK(predicted_seconds(algorithm.algorithm, link, 2e-10, ranks, kElements) ==
            Approx(seconds_of(algorithm, link, 2e-10, ranks, kElements)));
    }
  }
}

TEST_CASE("all-reduce costs: by hand") {
  const LinkCosts link{.latency_seconds = 10.0, .seconds_per_byte = 1.0};
  CHECK(predicted_seconds(Algorithm::kPairwise, link, 0.5, 4, 100) == Approx(6 * 10 + 600 + 150));
  CHECK(predicted_seconds(Algorithm::kRing, link, 0.5, 4, 100) == Approx(6 * 10 + 600 + 150));
  CHECK(predicted_seconds(Algorithm::kHalvingDoubling, link, 0.5, 4, 100) == Approx(4 * 10 + 600 + 150));
  CHECK(predicted_seconds(Algorithm::kHalvingDoubling, link, 0.5, 3, 100) ==
        Approx(2 * 10 + 400 + 100 + 2 * (10 + 400) + 200));
  CHECK(predicted_seconds(Algorithm::kBinomialTree, link, 0.5, 5, 100) == Approx(3 * (2 * 410 + 200)));
}

TEST_CASE("all-reduce costs: a link is fitted to its messages, and no cost is negative") {
  std::vector<bench::MessageTime> messages;
  for (const double bytes : {4.0, 1e3, 1e5, 1e7}) messages.push_back({bytes, 5e-6 + bytes / 2e9});
  const LinkCosts link = bench::fit_link(messages);
  CHECK(link.latency_seconds == Approx(5e-6));
  CHECK(link.seconds_per_byte == Approx(0.5e-9));
  // Relative errors count: the small messages are not drowned by the large ones.
  messages.back().seconds *= 1.2;
  CHECK(bench::fit_link(messages).latency_seconds == Approx(5e-6).epsilon(0.1));

  const std::vector<bench::MessageTime> falling = {{4.0, 2e-6}, {1000.0, 1e-6}};
  CHECK(bench::fit_link(falling).seconds_per_byte == 0.0);
  CHECK(bench::fit_link(falling).latency_seconds > 0.0);
  const std::vector<bench::MessageTime> steep = {{100.0, 1e-6}, {1000.0, 1e-4}};
  CHECK(bench::fit_link(steep).latency_seconds == 0.0);
  CHECK(bench::fit_link(steep).seconds_per_byte > 0.0);
}

}  // namespace arbalest::tests
