// Runs a body on several ranks, which are threads of the test. Catch2's macros may not be used in the body.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "engine/process/world.h"
#include "tests/process/memory_network.h"

namespace arbalest::tests {

using RankBody = std::function<void(engine::process::World&)>;

// Returns the error of each rank, or null.
inline std::vector<std::exception_ptr> errors_of_ranks(
    int ranks, const RankBody& body, const engine::process::WatchdogOptions& watchdog,
    const std::function<void(engine::process::World&, const char*)>& at_error) {
  MemoryNetwork network(ranks);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto world = network.open(rank, watchdog);
      try {
        body(*world);
        world->close();
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
        at_error(*world, error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Tells the other ranks of an error, so that they do not wait.
inline void announce(engine::process::World& world, const char* what) {
  world.announce_failure(engine::Error(engine::ErrorKind::kInternal, what));
}

// Rethrows the error of the first rank that throws.
inline void on_each_rank(int ranks, const RankBody& body,
                         const engine::process::WatchdogOptions& watchdog = {.peer_timeout_seconds = 60.0}) {
  for (const std::exception_ptr& error : errors_of_ranks(ranks, body, watchdog, announce)) {
    if (error) std::rethrow_exception(error);
  }
}

// Returns what each rank has thrown, or "". All ranks throw at the same point, or none of them.
inline std::vector<std::string> messages_of_ranks(int ranks, const RankBody& body) {
  const auto close = [](engine::process::World& world, const char*) { world.close(); };
  std::vector<std::string> messages;
  for (const std::exception_ptr& error : errors_of_ranks(ranks, body, {.peer_timeout_seconds = 60.0}, close)) {
    messages.emplace_back();
    try {
      if (error) std::rethrow_exception(error);
    } catch (const std::exception& thrown) {
      messages.back() = thrown.what();
    }
  }
  return messages;
}

}  // namespace arbalest::tests
