// Ranks that run operations over a simulated network, each with the production code's watchdog. One thread, virtual
// time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/process/progress.h"
#include "tests/process/simulated_network.h"

namespace arbalest::tests {

class SimulatedCluster {
 public:
  // The operation number `step` of a rank, or null after the last one.
  using Program = std::function<std::unique_ptr<engine::process::Operation>(int rank, int step)>;

  struct Options {
    double peer_timeout_seconds = 3.0;
    double operation_timeout_seconds = 600.0;
    int depth = 2;               // operations of a rank that are under way at the same time
    double pause_seconds = 0.0;  // of each rank before each operation, as if it computed
    NetworkOptions network = {};
  };

  SimulatedCluster(int ranks, std::uint64_t seed, Program program, const Options& options);

  SimulatedNetwork& network() noexcept { return network_; }
  int size() const noexcept { return static_cast<int>(ranks_.size()); }

  // The rank does nothing for some seconds, and goes on then.
  void stall(int rank, double seconds);
  // The rank begins no operation for some seconds, but its heartbeats go on.
  void compute(int rank, double seconds);

  // What the rank's heartbeats say that it does.
  void set_position(int rank, const engine::process::Position& position) {
    ranks_[static_cast<std::size_t>(rank)].progress->watchdog().set_position(position);
  }

  // Runs until every living rank has ended, or until `until`. Returns whether every living rank has ended.
  bool run(double until);

  // Whether the rank has done all operations and taken leave of all others.
  bool is_closed(int rank) const;
  // The error of the rank, if it has ended with one.
  std::optional<std::string> failure(int rank) const;
  // When the rank has ended.
  double end_time(int rank) const { return ranks_[static_cast<std::size_t>(rank)].end_time; }
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  struct Rank {
    std::unique_ptr<engine::process::Progress> progress;
    std::vector<std::unique_ptr<engine::process::Operation>> operations;  // all, because messages may refer to them
    std::vector<engine::process::Operation*> active;
    int begun = 0;
    bool has_more = true;
    bool wakes = false;  // a wake-up is scheduled
    double ready_at = 0.0;
    double stalled_until = 0.0;
    double end_time = -1.0;
  };

  void wake(int rank, double time);
  void step(int rank);
  void begin_operations(int rank);
  bool has_ended(const Rank& rank) const;

  const Program program_;
  const Options options_;
  SimulatedNetwork network_;
  std::vector<Rank> ranks_;
  std::vector<std::string> warnings_;
};

}  // namespace arbalest::tests
