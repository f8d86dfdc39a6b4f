// Tests the world of one process, and worlds of several ranks in threads of this process.
#include "engine/process/world.h"

#include <array>
#include <functional>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "engine/process/idling.h"
#include "tests/process/memory_network.h"
#include "tests/process/vectors.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::process::AllReduceMethod;
using engine::process::Mailbox;
using engine::process::Phase;
using engine::process::World;

// Runs `body` for each rank in a thread of its own.
void on_ranks(int ranks, const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

// Checks that all ranks are told that `hanging` hangs. It keeps the others waiting in `body` for 4 s.
void check_hang(int ranks, int hanging, const std::function<void(World& world)>& body) {
  MemoryNetwork network(ranks);
  std::vector<std::string> messages(static_cast<std::size_t>(ranks));
  on_ranks(ranks, [&](int rank) {
    const std::unique_ptr<World> world =
        network.open(rank, {.peer_timeout_seconds = 2.0, .operation_timeout_seconds = 4.0});
    try {
      body(*world);
    } catch (const engine::Error& error) {
      messages[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  for (const std::string& message : messages) {
    CHECK_THAT(message, ContainsSubstring(fmt::format("rank {} on host here hangs", hanging)));
  }
}

}  // namespace

TEST_CASE("world: a single process is alone, and every operation returns at once") {
  const std::unique_ptr<World> world = engine::process::open_world(std::nullopt, {});
  CHECK(world->rank() == 0);
  CHECK(world->size() == 1);
  CHECK(world->local_rank() == 0);
  CHECK(world->local_size() == 1);
  std::string text = "job";
  world->broadcast(text);
  CHECK(text == "job");
  CHECK(world->gather("bytes") == std::vector<std::string>{"bytes"});
  CHECK(world->agree("anything").empty());
  world->barrier();
  CHECK(world->any_of(5) == 5);
  CHECK(world->start_flags(6).wait() == 6);
  std::vector<float> values{1.0F, 2.0F};
  const auto sum = world->prepare_all_reduce(values);
  sum->start(world->next_turn());
  sum->wait();
  CHECK(values == std::vector<float>{1.0F, 2.0F});
  world->set_position(1, Phase::kTraining);
  CHECK(world->communication_cpu_seconds() == 0.0);
  world->close();
}

TEST_CASE("world: ranks exchange bytes, values and flags") {
  constexpr int kRanks = 4;
  MemoryNetwork network(kRanks);
  std::array<std::string, kRanks> broadcast;
  std::array<std::vector<std::string>, kRanks> gathered;
  std::array<std::vector<int>, kRanks> differing;
  std::array<std::uint64_t, kRanks> flags{};
  std::array<std::uint64_t, kRanks> later_flags{};
  std::array<double, kRanks> cpu_seconds{};
  on_ranks(kRanks, [&](int rank) {
    const auto i = static_cast<std::size_t>(rank);
    const std::unique_ptr<World> world = network.open(rank);
    engine::process::PendingFlags pending = world->start_flags(std::uint64_t{1} << rank);
    broadcast[i] = rank == 2 ? "from rank 2" : "";
    world->broadcast(broadcast[i], 2);
    gathered[i] = world->gather(std::to_string(rank));
    differing[i] = world->agree(rank == 3 ? "b" : "a");
    flags[i] = world->any_of(rank == 1 ? 8 : 0);
    world->barrier();
    later_flags[i] = pending.wait();
    world->close();
    cpu_seconds[i] = world->communication_cpu_seconds();
  });
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    CHECK(broadcast[rank] == "from rank 2");
    CHECK(gathered[rank] == (rank == 0 ? std::vector<std::string>{"0", "1", "2", "3"} : std::vector<std::string>{}));
    CHECK(differing[rank] == std::vector<int>{3});
    CHECK(flags[rank] == 8);
    CHECK(later_flags[rank] == 15);
    CHECK(cpu_seconds[rank] > 0.0);
  }
}

TEST_CASE("world: bytes go from one rank to another beside the operations of all") {
  constexpr int kRanks = 3;
  const std::vector<std::string> sent = {std::string(100'000, 'x'), "", "third"};
  MemoryNetwork network(kRanks);
  std::array<std::vector<std::string>, kRanks> received;
  std::array<std::uint64_t, kRanks> flags{};
  on_ranks(kRanks, [&](int rank) {
    const std::unique_ptr<World> world = network.open(rank);
    std::thread beside([&] {
      for (const int from : {2, 1}) {  // rank 1 has to wait for its turn
        for (const std::string& bytes : sent) {
          if (rank == 0) received[static_cast<std::size_t>(from)].push_back(world->receive(from));
          if (rank == from) world->send(bytes, 0);
        }
      }
    });
    for (int i = 0; i < 50; ++i) flags[static_cast<std::size_t>(rank)] |= world->any_of(std::uint64_t{1} << rank);
    beside.join();
    world->close();
  });
  for (const std::uint64_t all : flags) CHECK(all == 7);
  CHECK(received[1] == sent);
  CHECK(received[2] == sent);
}

TEST_CASE("world: all-reduces of several vectors run at the same time, started in another order on each rank") {
  constexpr int kRanks = 3;
  constexpr std::size_t kVectors = 4;
  constexpr int kRounds = 20;
  const auto method = GENERATE(AllReduceMethod::kCanonical, AllReduceMethod::kLibrary);
  MemoryNetwork network(kRanks);
  std::vector<Addends> addends;
  for (unsigned i = 0; i < kVectors; ++i) addends.emplace_back(kRanks, 200 + 100 * i, i);
  std::array<int, kRanks> wrong{};
  on_ranks(kRanks, [&](int rank) {
    const auto i = static_cast<std::size_t>(rank);
    const std::unique_ptr<World> world = network.open(rank);
    world->set_all_reduce(method);
    std::vector<std::vector<float>> values;
    for (const Addends& of : addends) values.push_back(of.of_rank[i]);
    std::vector<std::unique_ptr<engine::process::PreparedAllReduce>> sums;
    for (std::vector<float>& vector : values) sums.push_back(world->prepare_all_reduce(vector));
    for (int round = 0; round < kRounds; ++round) {
      std::array<std::uint64_t, kVectors> turns{};
      for (std::uint64_t& turn : turns) turn = world->next_turn();
      for (std::size_t v = 0; v < kVectors; ++v) values[v] = addends[v].of_rank[i];
      for (std::size_t step = 0; step < kVectors; ++step) {
        const std::size_t v = (step + i) % kVectors;
        sums[v]->start(turns[v]);
      }
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[v]->wait();
        // Up to three addends, the tree is the plain order.
        wrong[i] += values[v] == addends[v].sum ? 0 : 1;
      }
    }
    world->close();
  });
  for (const int count : wrong) CHECK(count == 0);
}

TEST_CASE("world: a rank that is cut off is named by every waiting thread of the others") {
  constexpr int kRanks = 3;
  MemoryNetwork network(kRanks);
  std::array<std::string, kRanks> messages;
  std::array<std::string, kRanks> later_messages;
  std::array<engine::ErrorKind, kRanks> kinds{};
  on_ranks(kRanks, [&](int rank) {
    const auto i = static_cast<std::size_t>(rank);
    const std::unique_ptr<World> world = network.open(rank);
    world->set_position(3, Phase::kSaving);
    for (std::string* message : {&messages[i], &later_messages[i]}) {
      try {
        world->barrier();
        if (rank == 1) network.cut_off(1);
        world->set_peer_timeout(5.0);
        world->barrier();
      } catch (const engine::Error& error) {
        kinds[i] = error.kind();
        *message = error.what();
      }
    }
  });
  for (const std::size_t rank : {0U, 2U}) {
    CHECK_THAT(messages[rank], ContainsSubstring("rank 1 on host here is dead, stopped or cut off"));
    CHECK(later_messages[rank] == messages[rank]);
    CHECK(kinds[rank] == engine::ErrorKind::kPeer);
  }
  CHECK_FALSE(messages[1].empty());  // it blames one of the others
}

TEST_CASE("world: a thread that waits for no operation asks for failures") {
  MemoryNetwork network(2);
  std::array<std::string, 2> early;
  std::array<std::string, 2> late;
  const auto message_of = [](const World& world, double seconds) -> std::string {
    try {
      world.check(seconds);
      return "";
    } catch (const engine::Error& error) {
      return error.what();
    }
  };
  on_ranks(2, [&](int rank) {
    const auto i = static_cast<std::size_t>(rank);
    const std::unique_ptr<World> world = network.open(rank);
    early[i] = message_of(*world, 0.0) + message_of(*world, 0.001);
    try {
      world->barrier();
    } catch (const engine::Error&) {
      if (rank == 1) throw;  // rank 1 may fail before rank 0 has left the barrier
    }
    if (rank == 1) world->announce_failure({engine::ErrorKind::kDevice, "its GPU has failed"});
    late[i] = message_of(*world, 60.0);
    late[i] += message_of(*world, 0.0) == late[i] ? "" : " and changes";
  });
  CHECK(early == std::array<std::string, 2>{});
  CHECK(late[0] == "rank 1 on host here has failed in round 0 (start): its GPU has failed");
  CHECK(late[1] == "its GPU has failed");
  const World alone;
  CHECK_NOTHROW(alone.check(60.0));
}

TEST_CASE("world: a rank that fails tells the others the reason") {
  constexpr int kRanks = 3;
  MemoryNetwork network(kRanks);
  std::array<std::string, kRanks> messages;
  std::array<engine::ErrorKind, kRanks> kinds{};
  on_ranks(kRanks, [&](int rank) {
    const std::unique_ptr<World> world = network.open(rank);
    world->set_position(9, Phase::kTraining);
    try {
      world->barrier();
      if (rank == 2) world->announce_failure({engine::ErrorKind::kOutOfMemory, "its disk is full"});
      world->barrier();
    } catch (const engine::Error& error) {
      messages[static_cast<std::size_t>(rank)] = error.what();
      kinds[static_cast<std::size_t>(rank)] = error.kind();
    }
  });
  CHECK(messages[2] == "its disk is full");
  CHECK(kinds[2] == engine::ErrorKind::kOutOfMemory);
  for (const std::size_t rank : {0U, 1U}) {
    CHECK(messages[rank] == "rank 2 on host here has failed in round 9 (training): its disk is full");
    CHECK(kinds[rank] == engine::ErrorKind::kPeer);
  }
}

TEST_CASE("world: the others hear of a failure even if the world goes away right after it") {
  constexpr int kRuns = 200;
  int told = 0;
  for (int run = 0; run < kRuns; ++run) {
    MemoryNetwork network(2);
    std::string message;
    on_ranks(2, [&](int rank) {
      const std::unique_ptr<World> world = network.open(rank, {.peer_timeout_seconds = 5.0});
      world->mailbox();  // wakes the communication thread
      if (rank == 1) return world->announce_failure({engine::ErrorKind::kInternal, "it has had enough"});
      try {
        world->barrier();
      } catch (const engine::Error& error) {
        message = error.what();
      }
    });
    told += message.ends_with("it has had enough") ? 1 : 0;
  }
  CHECK(told == kRuns);
}

TEST_CASE("world: a rank that hangs before the end is named, though all could send messages") {
  check_hang(2, 1, [](World& world) {
    world.mailbox();
    world.barrier();
    if (world.rank() == 1) world.check(30.0);  // it sends heartbeats, but does not come to the end
    world.close();
  });
}

TEST_CASE("world: a rank that owes a message and does nothing is named, and one that waits itself is not") {
  check_hang(3, 2, [](World& world) {
    Mailbox& mailbox = world.mailbox();
    world.barrier();
    // Rank 0 waits for both others, of which rank 1 waits in a barrier, and rank 2 for nobody.
    if (world.rank() == 0) mailbox.await(std::array{1, 2});
    if (world.rank() == 1) world.barrier();
    world.check(60.0);
  });
}

TEST_CASE("world: others that wait in an operation do not blame a rank that waits for a message") {
  check_hang(3, 0, [](World& world) {
    Mailbox& mailbox = world.mailbox();
    if (world.rank() == 2) world.barrier();  // it waits for rank 1
    if (world.rank() == 1) world.check(1.0);
    if (world.rank() == 1) mailbox.await(std::array{0});
    world.check(60.0);
  });
}

TEST_CASE("world: a message ends the wait for it, and so does the end") {
  MemoryNetwork network(2);
  on_ranks(2, [&](int rank) {
    const std::unique_ptr<World> world =
        network.open(rank, {.peer_timeout_seconds = 1.0, .operation_timeout_seconds = 2.0});
    const std::array other{1 - rank};
    for (int i = 0; i < 8; ++i) {  // longer than the timeout, in all
      world->mailbox().await(other);
      if (rank == 1) world->check(0.5);
      world->mailbox().send(1 - rank, "message");
      while (!world->mailbox().take()) world->check(0.01);
    }
    world->mailbox().await(other);
    world->close();
  });
}

TEST_CASE("world: an error at the start comes from the constructor") {
  const auto open = []() -> std::unique_ptr<engine::process::Transport> {
    engine::fail(engine::ErrorKind::kUsage, "no MPI here");
  };
  CHECK_THROWS_WITH(World(open, {}), "no MPI here");
}

TEST_CASE(
    "world: the communication thread sleeps longer and longer during an operation, and long at once without one") {
  engine::process::Idling idling;
  idling.reset(100.0);
  CHECK(idling.next_sleep(100.0 + 10e-6, true) == 0.0);
  for (const double seconds : {50e-6, 100e-6, 200e-6, 200e-6}) {
    CHECK(idling.next_sleep(100.001, true) == Approx(seconds));
  }
  // A wait of 64 ms has sleeps of at most 2 ms, and a long one of 5 ms.
  for (const double seconds : {200e-6, 400e-6, 800e-6, 1.6e-3, 2e-3, 2e-3}) {
    CHECK(idling.next_sleep(100.064, true) == Approx(seconds));
  }
  for (const double seconds : {2e-3, 4e-3, 5e-3, 5e-3}) CHECK(idling.next_sleep(101.0, true) == Approx(seconds));
  CHECK(idling.next_sleep(101.0, false) == Approx(5e-3));
  idling.reset(101.0);
  CHECK(idling.next_sleep(101.0, false) == Approx(5e-3));
  CHECK(idling.next_sleep(101.0, true) == 0.0);
  CHECK(idling.next_sleep(101.001, true) == Approx(50e-6));
}

}  // namespace arbalest::tests
