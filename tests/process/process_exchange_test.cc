// Tests exchanges between the CPU devices of several processes, whose worlds are in threads of this process.
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::ExchangeKind;
using engine::Shape;
using Values = std::vector<float>;

constexpr std::int64_t kExamples = 2;
constexpr std::int64_t kWidth = 3;  // columns of one device

// One exchange, forward or backward.
struct Exchange {
  ExchangeKind kind = ExchangeKind::kGather;
  bool forward = true;
};

const std::vector<Exchange> kAllExchanges = {
    {ExchangeKind::kGather, true},       {ExchangeKind::kToColumns, true},   {ExchangeKind::kToExamples, true},
    {ExchangeKind::kScatterSums, true},  {ExchangeKind::kToColumns, false},  {ExchangeKind::kGather, false},
    {ExchangeKind::kScatterSums, false}, {ExchangeKind::kToExamples, false},
};

// The shapes of the exchange's input on a device, and of its output, going forward.
std::pair<Shape, Shape> shapes_of(ExchangeKind kind, std::int64_t ranks) {
  const Shape own{kExamples, ranks * kWidth};
  const Shape all{ranks * kExamples, ranks * kWidth};
  const Shape columns{ranks * kExamples, kWidth};
  switch (kind) {
    case ExchangeKind::kGather: return {own, all};
    case ExchangeKind::kScatterSums: return {all, own};
    case ExchangeKind::kToColumns: return {own, columns};
    case ExchangeKind::kToExamples: break;
  }
  return {columns, own};
}

// The devices of one process, which may share a core.
class Process {
 public:
  Process(int devices, engine::process::World& world) {
    const std::string name = "cpu:" + std::to_string(engine::host::allowed_cores().front());
    for (int d = 0; d < devices; ++d) {
      devices_.push_back(engine::open_device(engine::parse_device(name)));
      streams_.push_back(devices_.back()->create_stream({.name = "learner", .threads = 2}));
    }
    places_ = engine::make_exchange(devices_, world);
  }

  engine::ExchangeGroup& group() { return *places_.front().group; }
  int first_rank() const { return places_.front().rank; }

  // Runs an exchange, and returns what each device gets. Each number that is exchanged follows from its place.
  std::vector<Values> run(const Exchange& exchange) {
    const auto [input, output] = shapes_of(exchange.kind, group().ranks());
    std::vector<std::unique_ptr<engine::Operator>> operators;
    std::vector<Values> given;
    std::vector<Values> got;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const engine::Layout layout = devices_[d]->plain_layout(input, engine::DType::kFloat32);
      operators.push_back(devices_[d]->prepare(engine::ExchangeSpec{layout, exchange.kind, places_[d], false}, {}));
      given.push_back(numbers(places_[d].rank, (exchange.forward ? input : output).elements()));
      got.emplace_back(static_cast<std::size_t>((exchange.forward ? output : input).elements()));
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (exchange.forward) {
        const void* inputs[] = {given[d].data()};
        engine::ForwardOperands operands;
        operands.inputs = inputs;
        operands.output = got[d].data();
        operators[d]->forward(*streams_[d], "exchange", operands);
      } else {
        void* gradients[] = {got[d].data()};
        engine::BackwardOperands operands;
        operands.output_gradient = given[d].data();
        operands.input_gradients = gradients;
        operators[d]->backward(*streams_[d], "exchange backward", operands);
      }
    }
    for (const auto& stream : streams_) stream->record().synchronize();
    return got;
  }

 private:
  static Values numbers(int rank, std::int64_t count) {
    Values values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.1F * static_cast<float>((i * 37 + static_cast<std::size_t>(rank) * 101 + 5) % 89);
    }
    return values;
  }

  std::vector<std::unique_ptr<engine::Device>> devices_;
  std::vector<std::unique_ptr<engine::Stream>> streams_;
  std::vector<engine::ExchangeMember> places_;
};

}  // namespace

TEST_CASE("process exchange: devices of several processes get the bits that one process's devices get") {
  const std::vector<int> devices =
      GENERATE(std::vector<int>{1, 1}, std::vector<int>{2, 2}, std::vector<int>{1, 3, 2}, std::vector<int>{2, 1});
  const int ranks = std::reduce(devices.begin(), devices.end());
  engine::process::World alone;
  Process whole(ranks, alone);
  std::vector<std::vector<Values>> expected;
  for (const Exchange& exchange : kAllExchanges) expected.push_back(whole.run(exchange));

  std::vector<std::vector<Values>> results(kAllExchanges.size(), std::vector<Values>(static_cast<std::size_t>(ranks)));
  std::vector<std::uint64_t> received(static_cast<std::size_t>(ranks));
  on_each_rank(static_cast<int>(devices.size()), [&](engine::process::World& world) {
    Process process(devices[static_cast<std::size_t>(world.rank())], world);
    const auto first = static_cast<std::size_t>(process.first_rank());
    for (std::size_t e = 0; e < kAllExchanges.size(); ++e) {
      const std::vector<Values> got = process.run(kAllExchanges[e]);
      for (std::size_t d = 0; d < got.size(); ++d) results[e][first + d] = got[d];
      expect(process.group().host_bytes() >= sizeof(float) * kExamples * kWidth * (devices.size() - 1),
             "the messages are counted");
      for (std::size_t d = 0; d < got.size(); ++d) {
        received[first + d] = process.group().received_bytes(static_cast<int>(first + d));
      }
    }
  });
  for (std::size_t e = 0; e < kAllExchanges.size(); ++e) {
    CAPTURE(e);
    CHECK((results[e] == expected[e]));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(received[static_cast<std::size_t>(rank)] == whole.group().received_bytes(rank));
  }
}

TEST_CASE("process exchange: a process that is in another exchange is named") {
  std::vector<std::string> messages(2);
  on_each_rank(2, [&](engine::process::World& world) {
    Process process(1, world);
    try {
      // Both exchanges bring as many bytes.
      process.run({world.rank() == 0 ? ExchangeKind::kToColumns : ExchangeKind::kToExamples, true});
    } catch (const engine::Error& error) {
      expect(error.kind() == engine::ErrorKind::kPeer, "an error of a peer");
      messages[static_cast<std::size_t>(world.rank())] = error.what();
    }
  });
  CHECK_THAT(messages[0], ContainsSubstring("rank 1 on host here runs another all-gather or all-to-all than rank 0"));
  CHECK_THAT(messages[1], ContainsSubstring("rank 0 on host here runs another all-gather or all-to-all than rank 1"));
}

TEST_CASE("process exchange: a dead process is named, and all devices fail") {
  std::vector<std::string> messages;
  MemoryNetwork network(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto world = network.open(rank);
      Process process(2, *world);
      process.run(kAllExchanges.front());
      if (rank == 1) network.cut_off(1);
      world->set_peer_timeout(2.0);
      if (rank == 1) return;  // it never comes to the next exchange
      try {
        process.run(kAllExchanges.front());
      } catch (const engine::Error& error) {
        messages.emplace_back(error.what());
        expect(error.kind() == engine::ErrorKind::kPeer, "an error of a peer");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], ContainsSubstring("rank 1 on host here is dead, stopped or cut off"));
}

}  // namespace arbalest::tests
