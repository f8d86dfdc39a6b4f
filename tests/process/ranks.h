// Runs a body on several ranks, which are threads of the test.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "engine/error.h"
#include "engine/process/world.h"
#include "tests/process/memory_network.h"

namespace arbalest::tests {

// Rethrows the error of the first rank that throws. Catch2's macros may not be used in the body.
inline void on_each_rank(int ranks, const std::function<void(engine::process::World&)>& body) {
  MemoryNetwork network(ranks);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto world = network.open(rank);
      try {
        body(*world);
        world->close();
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
        // The others must not wait.
        world->announce_failure(engine::Error(engine::ErrorKind::kInternal, error.what()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace arbalest::tests
