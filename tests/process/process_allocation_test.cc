// A round's operations allocate nothing in the threads that call them. This program replaces operator new.
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/process/memory_network.h"
#include "tests/support/catch.h"

namespace {

thread_local bool is_counting = false;
std::atomic<int> allocations{0};

void* allocate(std::size_t bytes) {
  if (is_counting) ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace arbalest::tests {

TEST_CASE("process allocation: flags and all-reduces of a round allocate nothing after the first rounds") {
  constexpr int kRanks = 2;
  constexpr int kRounds = 50;
  MemoryNetwork network(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&network, rank] {
      const auto world = network.open(rank);
      std::vector<float> values(1000);
      const auto sum = world->prepare_all_reduce(values);
      std::optional<engine::process::PendingFlags> pending;
      for (int round = 0; round < kRounds; ++round) {
        is_counting = round >= 3;
        engine::process::PendingFlags flags = world->start_flags(std::uint64_t{1} << rank);
        sum->start(world->next_turn());
        sum->wait();
        if (pending) pending->wait();
        pending = std::move(flags);
      }
      is_counting = false;
      pending.reset();
      world->close();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(allocations == 0);
}

TEST_CASE("process allocation: flags of a single process allocate nothing") {
  engine::process::World world;
  is_counting = true;
  const std::uint64_t flags = world.start_flags(5).wait();
  is_counting = false;
  CHECK(flags == 5);
  CHECK(allocations == 0);
}

}  // namespace arbalest::tests
