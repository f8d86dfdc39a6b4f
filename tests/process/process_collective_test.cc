// Tests the all-reduce over CPU devices of several processes, whose worlds are in threads of this process.
#include <array>
#include <functional>
#include <thread>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/collective.h"
#include "engine/cpu/runtime/stream.h"
#include "engine/cpu/runtime/task.h"
#include "tests/process/memory_network.h"
#include "tests/process/vectors.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

constexpr std::size_t kElements = 10'007;

// A Process has streams and their parts of the all-reduce.
struct Process {
  Process(const std::vector<std::vector<float>>& addends, std::size_t first, std::size_t devices)
      : values(addends.begin() + static_cast<std::ptrdiff_t>(first),
               addends.begin() + static_cast<std::ptrdiff_t>(first + devices)) {
    for (std::size_t i = 0; i < devices; ++i) {
      streams.push_back(device->create_stream({.name = "rank " + std::to_string(first + i)}));
      parts.push_back({streams[i].get(), values[i].data()});
    }
  }

  std::unique_ptr<engine::Device> device = engine::open_device(engine::parse_device("cpu"));
  std::vector<std::vector<float>> values;
  std::vector<std::unique_ptr<engine::Stream>> streams;
  std::vector<engine::CollectivePart> parts;
};

void on_ranks(int ranks, const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("process collective: processes with a power of two of devices give the bits of one process") {
  struct Case {
    int processes;
    int devices;
  };
  const auto [processes, devices] = GENERATE(Case{2, 1}, Case{3, 1}, Case{2, 2}, Case{3, 2}, Case{2, 4}, Case{5, 1});
  const int ranks = processes * devices;
  const Addends addends(ranks, kElements, 3);

  Process alone(addends.of_rank, 0, static_cast<std::size_t>(ranks));
  const auto memory = engine::make_memory_collective(ranks);
  memory->all_reduce_sum(alone.parts, kElements, "all-reduce");
  for (const auto& stream : alone.streams) stream->record().synchronize();
  REQUIRE(alone.values[0] == addends.sum);

  MemoryNetwork network(processes);
  std::vector<std::vector<std::vector<float>>> results(static_cast<std::size_t>(processes));
  on_ranks(processes, [&](int rank) {
    const auto world = network.open(rank);
    Process process(addends.of_rank, static_cast<std::size_t>(rank * devices), static_cast<std::size_t>(devices));
    {
      const auto collective = engine::make_process_collective(devices, *world);
      collective->all_reduce_sum(process.parts, kElements, "all-reduce");
      for (const auto& stream : process.streams) collective->wait(stream->record());
    }
    results[static_cast<std::size_t>(rank)] = process.values;
    world->close();
  });
  for (const auto& of_process : results) {
    for (const std::vector<float>& values : of_process) CHECK(values == addends.sum);
  }
}

TEST_CASE("process collective: rounds are enqueued ahead, and each adds what the one before has left") {
  constexpr int kProcesses = 2;
  constexpr int kRounds = 50;
  MemoryNetwork network(kProcesses);
  std::array<std::vector<float>, kProcesses> results;
  on_ranks(kProcesses, [&](int rank) {
    const auto world = network.open(rank);
    const std::vector<std::vector<float>> ones(2, std::vector<float>(100, 0x1p-60F));
    Process process(ones, 0, 2);
    {
      const auto collective = engine::make_process_collective(2, *world);
      for (int round = 0; round < kRounds; ++round) collective->all_reduce_sum(process.parts, 100, "all-reduce");
      for (const auto& stream : process.streams) collective->wait(stream->record());
    }
    results[static_cast<std::size_t>(rank)] = process.values[1];
    world->close();
  });
  // Each round multiplies by the number of devices, 4: 2^-60 * 4^50.
  for (const std::vector<float>& values : results) CHECK(values == std::vector<float>(100, 0x1p40F));
}

TEST_CASE("process collective: the failure of a stream fails the streams of all processes") {
  constexpr int kProcesses = 3;
  MemoryNetwork network(kProcesses);
  const Addends addends(2 * kProcesses, 50, 1);
  std::array<std::array<std::string, 2>, kProcesses> messages;
  on_ranks(kProcesses, [&](int rank) {
    const auto world = network.open(rank);
    Process process(addends.of_rank, static_cast<std::size_t>(2 * rank), 2);
    const auto collective = engine::make_process_collective(2, *world);
    if (rank == 1) {
      auto& stream = static_cast<engine::cpu::CpuStream&>(*process.streams[1]);
      stream.submit(engine::cpu::make_task([](const engine::cpu::TaskContext&) {
                      engine::fail(engine::ErrorKind::kDiverged, "not a number");
                    }),
                    "loss");
    }
    collective->all_reduce_sum(process.parts, 50, "all-reduce");
    for (std::size_t i = 0; i < 2; ++i) {
      try {
        collective->wait(process.streams[i]->record());
      } catch (const engine::Error& error) {
        messages[static_cast<std::size_t>(rank)][i] = error.what();
      }
    }
    process.streams.clear();  // before the collective, whose tasks they run
  });
  CHECK_THAT(messages[1][1], ContainsSubstring("not a number"));
  CHECK_THAT(messages[1][0], ContainsSubstring("another device of the all-reduce has failed"));
  for (const std::size_t rank : {0U, 2U}) {
    CHECK_THAT(messages[rank][0], ContainsSubstring("rank 1 on host here has failed"));
    CHECK_THAT(messages[rank][0], ContainsSubstring("not a number"));
    CHECK_THAT(messages[rank][1], ContainsSubstring("rank 1 on host here has failed"));
  }
}

TEST_CASE("process collective: in a world of one process it is the memory collective") {
  engine::process::World world;
  const Addends addends(3, 100, 1);
  Process process(addends.of_rank, 0, 3);
  const auto collective = engine::make_process_collective(3, world);
  collective->all_reduce_sum(process.parts, 100, "all-reduce");
  for (const auto& stream : process.streams) collective->wait(stream->record());
  for (const std::vector<float>& values : process.values) CHECK(values == addends.sum);
}

}  // namespace arbalest::tests
