// Runs operations of many ranks over a simulated network, each with the production code's watchdog and order of turns.
// Everything happens in one thread and in virtual time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/process/progress.h"
#include "engine/process/turn_queue.h"
#include "tests/process/simulated_network.h"

namespace arbalest::tests {

class SimulatedCluster {
 public:
  // Returns the operation number `step` of a rank, or null after the last one.
  using Program = std::function<std::unique_ptr<engine::process::Operation>(int rank, int step)>;

  struct Options {
    double peer_timeout_seconds = 3.0;
    double operation_timeout_seconds = 600.0;
    int depth = 2;                   // streams of a rank; step s runs on stream s % depth
    double pause_seconds = 0.0;      // of each stream before each operation, as if it computed
    bool has_random_pauses = false;  // pauses are random, up to twice as long; so the order of starts differs by rank
    std::uint64_t first_number = 0;  // of the operations; it decides their channels
    NetworkOptions network = {};
  };

  SimulatedCluster(int ranks, std::uint64_t seed, Program program, const Options& options);

  SimulatedNetwork& network() noexcept { return network_; }
  int size() const noexcept { return static_cast<int>(ranks_.size()); }

  // Stops the rank for some seconds.
  void stall(int rank, double seconds);
  // Lets the rank begin no operation for some seconds, while its heartbeats go on; or only none on one of its streams.
  void compute(int rank, double seconds);
  void compute(int rank, double seconds, int stream);
  // Gives the rank an error of its own. When it has told the others, its process is gone.
  void fail(int rank, const engine::Error& error);

  // A signal asks the rank for a polite stop.
  void request_stop(int rank);

  // Sets what the rank's heartbeats say that it does.
  void set_position(int rank, const engine::process::Position& position) {
    ranks_[static_cast<std::size_t>(rank)].progress->watchdog().set_position(position);
  }

  // Sets whether the rank works on files.
  void set_working(int rank, bool is_working) {
    ranks_[static_cast<std::size_t>(rank)].progress->watchdog().set_working(is_working);
  }

  // Runs until every living rank has ended, or until `until`. Returns whether every living rank has ended.
  bool run(double until);

  engine::process::Progress::State state(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)].progress->state();
  }
  // Returns whether the rank has done all operations and taken leave of all others.
  bool is_closed(int rank) const { return state(rank) == engine::process::Progress::State::kClosed; }
  // Returns whether the rank ends at once, because others have not heard of its stop.
  bool ends_at_once(int rank) const { return ranks_[static_cast<std::size_t>(rank)].progress->must_end_at_once(); }
  // Returns the error of the rank, if it has ended with one.
  std::optional<std::string> failure(int rank) const;
  // Returns when the rank has ended.
  double end_time(int rank) const { return ranks_[static_cast<std::size_t>(rank)].end_time; }
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  struct Stream {
    int next_step = 0;
    bool has_more = true;
    double ready_at = 0.0;
    double wakes_at = 0.0;                        // a wake-up is scheduled for this time
    engine::process::Submission submission = {};  // of the operation that is under way, or null
  };
  struct Rank {
    std::unique_ptr<engine::process::Progress> progress;
    std::vector<std::unique_ptr<engine::process::Operation>> operations;  // all, because messages may refer to them
    std::vector<Stream> streams;
    engine::process::TurnQueue queue;
    bool wakes = false;  // a wake-up is scheduled
    double stalled_until = 0.0;
    double end_time = -1.0;
    bool fails_by_itself = false;
  };

  void wake(int rank, double time);
  void step(int rank);
  void settle(Rank& rank);
  void begin_operations(int rank);
  void submit(int rank, Stream& stream);
  double pause();
  bool has_ended(const Rank& rank) const;

  const Program program_;
  const Options options_;
  SimulatedNetwork network_;
  std::mt19937_64 generator_;
  std::vector<Rank> ranks_;
  std::vector<std::string> warnings_;
};

}  // namespace arbalest::tests
