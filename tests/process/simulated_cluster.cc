#include "tests/process/simulated_cluster.h"

#include <algorithm>

namespace arbalest::tests {

using engine::process::Operation;
using engine::process::Progress;

SimulatedCluster::SimulatedCluster(int ranks, std::uint64_t seed, Program program, const Options& options)
    : program_(std::move(program)),
      options_(options),
      network_(ranks, seed, options.network),
      ranks_(static_cast<std::size_t>(ranks)) {
  network_.on_ended([this](int rank) { wake(rank, network_.now()); });
  for (int rank = 0; rank < ranks; ++rank) {
    ranks_[static_cast<std::size_t>(rank)].progress = std::make_unique<Progress>(
        network_.transport(rank),
        engine::process::WatchdogOptions{.peer_timeout_seconds = options.peer_timeout_seconds,
                                         .operation_timeout_seconds = options.operation_timeout_seconds,
                                         .warn = [this](const std::string& text) { warnings_.push_back(text); }},
        0.0);
    wake(rank, 0.0);
  }
}

void SimulatedCluster::stall(int rank, double seconds) {
  ranks_[static_cast<std::size_t>(rank)].stalled_until = network_.now() + seconds;
}

void SimulatedCluster::compute(int rank, double seconds) {
  ranks_[static_cast<std::size_t>(rank)].ready_at = network_.now() + seconds;
}

void SimulatedCluster::wake(int rank, double time) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  if (time <= network_.now()) {
    if (state.wakes) return;
    state.wakes = true;
    network_.at(network_.now(), [this, rank, &state] {
      state.wakes = false;
      step(rank);
    });
  } else {
    network_.at(time, [this, rank] { step(rank); });
  }
}

bool SimulatedCluster::has_ended(const Rank& rank) const {
  return rank.progress->state() == Progress::State::kClosed || rank.progress->state() == Progress::State::kFailed;
}

void SimulatedCluster::step(int rank) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  if (!network_.is_alive(rank) || has_ended(state)) return;
  if (network_.now() < state.stalled_until) return wake(rank, state.stalled_until);
  const double due = state.progress->next_step();
  state.progress->step(network_.now());
  if (!network_.is_alive(rank)) return;
  if (state.progress->state() == Progress::State::kRunning) begin_operations(rank);
  if (has_ended(state)) {
    state.end_time = network_.now();
    return;
  }
  if (network_.has_ended_messages(rank)) wake(rank, network_.now());
  if (due <= network_.now()) wake(rank, state.progress->next_step());
}

void SimulatedCluster::begin_operations(int rank) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  const auto drop_done = [&] {
    return std::erase_if(state.active, [&](const Operation* operation) {
             if (!operation->done()) return false;
             state.progress->forget(*operation);
             return true;
           }) > 0;
  };
  drop_done();
  while (state.has_more && static_cast<int>(state.active.size()) < options_.depth) {
    if (network_.now() < state.ready_at) return wake(rank, state.ready_at);
    state.ready_at = network_.now() + options_.pause_seconds;
    std::unique_ptr<Operation> operation = program_(rank, state.begun);
    state.has_more = operation != nullptr;
    if (!state.has_more) break;
    state.active.push_back(operation.get());
    state.operations.push_back(std::move(operation));
    state.progress->start(*state.active.back(),
                          engine::process::all_reduce_channel(static_cast<std::uint64_t>(state.begun++)));
    if (state.progress->state() != Progress::State::kRunning) return;
    drop_done();
  }
  if (!state.has_more && state.active.empty()) state.progress->close();
}

bool SimulatedCluster::run(double until) {
  const auto is_over = [&] {
    for (int rank = 0; rank < size(); ++rank) {
      if (network_.is_alive(rank) && !has_ended(ranks_[static_cast<std::size_t>(rank)])) return false;
    }
    return true;
  };
  while (!is_over()) {
    if (!network_.step(until)) return false;
  }
  return true;
}

bool SimulatedCluster::is_closed(int rank) const {
  return ranks_[static_cast<std::size_t>(rank)].progress->state() == Progress::State::kClosed;
}

std::optional<std::string> SimulatedCluster::failure(int rank) const {
  const std::optional<engine::Error>& failure = ranks_[static_cast<std::size_t>(rank)].progress->failure();
  return failure ? std::optional<std::string>(failure->what()) : std::nullopt;
}

}  // namespace arbalest::tests
